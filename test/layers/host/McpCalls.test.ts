import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { McpSchema } from "effect/ai"
import { WriteGrant } from "../../../src/domain/bridge/HostTool.ts"
import type { McpApproval } from "../../../src/layers/host/McpApproval.ts"
import { makeMcpCalls } from "../../../src/layers/host/McpCalls.ts"
import { makeMcpCatalog } from "../../../src/layers/host/McpCatalog.ts"
import { writeTool } from "../../support/hostTools.ts"

const context = McpSchema.McpRequestContext.of({ clientId: 0, protocolVersion: "2025-11-25", clientCapabilities: {} })

/** Runs `shop__put` with an approval that does `meanwhile` before it says yes to `granted`. */
const run = Effect.fnUntraced(function* (
  meanwhile: (scope: Scope.Closeable) => Effect.Effect<void>,
  granted?: unknown
) {
  const written: Array<unknown> = []
  const scope = yield* Scope.make()
  const catalog = yield* makeMcpCatalog(new Set())
  const put = writeTool("put", (args) => Effect.sync(() => written.push(args)))
  yield* catalog.register(put).pipe(Scope.provide(scope))
  const approval: McpApproval = {
    decide: ({ args, tool }) =>
      Effect.as(meanwhile(scope), { _tag: "Granted", grant: WriteGrant.allowOnce(tool, granted ?? args) })
  }
  const entry = catalog.find(put.publicName)
  assert.isDefined(entry)
  const result = yield* makeMcpCalls(approval)
    .run(entry, { item: "milk" })
    .pipe(Effect.provideService(McpSchema.McpRequestContext, context))
  return { result, written }
})

describe("McpCalls", () => {
  it.effect("runs a write that was granted", () =>
    Effect.gen(function* () {
      const { written } = yield* run(() => Effect.void)
      assert.deepStrictEqual(written, [{ item: "milk" }])
    })
  )

  it.effect("runs nothing when the tool went in the instant after the yes", () =>
    Effect.gen(function* () {
      const { result, written } = yield* run((scope) => Scope.close(scope, Exit.void))
      assert.deepStrictEqual(written, [])
      assert.include(JSON.stringify(result), "was taken back or replaced; nothing was run")
    })
  )

  it.effect("cannot run a write on a grant for other arguments", () =>
    Effect.gen(function* () {
      const { result, written } = yield* run(() => Effect.void, { item: "milk" })
      assert.deepStrictEqual(written, [])
      assert.include(JSON.stringify(result), 'no approval was given for this call of tool \\"shop__put\\"')
    })
  )
})
