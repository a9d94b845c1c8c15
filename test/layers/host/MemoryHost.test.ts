import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { MemoryHost, ToolHost } from "../../../src/index.ts"
import { readTool, writeTool } from "../../support/hostTools.ts"

describe("MemoryHost", () => {
  it.effect("lists a tool exactly while its scope is open", () =>
    Effect.gen(function* () {
      const host = yield* ToolHost
      const memory = yield* MemoryHost
      const names = Effect.map(memory.tools, (tools) => tools.map(({ rawName }) => String(rawName)))
      const scope = yield* Scope.make()
      yield* host.register(readTool("b")).pipe(Scope.provide(scope))
      yield* host.register(readTool("a"))
      assert.deepStrictEqual(yield* names, ["a", "b"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* names, ["a"])
    }).pipe(Effect.provide(MemoryHost.layer()))
  )

  it.effect("refuses a name that is taken, and keeps the tool that has it", () =>
    Effect.gen(function* () {
      const host = yield* ToolHost
      yield* host.register(readTool("a", () => Effect.succeed("first")))
      const refused = yield* Effect.flip(Effect.scoped(host.register(readTool("a"))))
      assert.strictEqual(refused.message, 'tool "shop__a" is already registered')
      assert.strictEqual(yield* MemoryHost.use((memory) => memory.call("shop__a", {})), "first")
    }).pipe(Effect.provide(MemoryHost.layer()))
  )

  it.effect("runs a write only when it is approved", () =>
    Effect.gen(function* () {
      const host = yield* ToolHost
      yield* host.register(writeTool("order", () => Effect.succeed("done")))
      const memory = yield* MemoryHost
      assert.strictEqual(yield* memory.call("shop__order", {}, () => Effect.succeed(true)), "done")
      for (const approve of [undefined, () => Effect.succeed(false)]) {
        const error = yield* Effect.flip(memory.call("shop__order", {}, approve))
        assert.strictEqual(error.reason._tag, "NotGranted")
      }
    }).pipe(Effect.provide(MemoryHost.layer()))
  )
})
