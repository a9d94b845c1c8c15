import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeWriteTool, WriteGrant } from "../../../src/domain/bridge/HostTool.ts"
import { publicName, RawName } from "../../../src/domain/bridge/ToolName.ts"

const writeTool = (written: Array<unknown>) =>
  makeWriteTool(
    {
      publicName: publicName("shop", "order"),
      label: "shop.order",
      namespace: "shop",
      rawName: RawName.make("order"),
      description: "",
      parametersSchema: { type: "object" }
    },
    (args) => Effect.sync(() => written.push(args))
  )

describe("WriteGrant", () => {
  it.effect("opens one call of the tool and the arguments that were asked about", () =>
    Effect.gen(function* () {
      const written: Array<unknown> = []
      const tool = writeTool(written)
      const args = { n: 1 }
      const grant = WriteGrant.allowOnce(tool, args)
      yield* Effect.provideService(tool.call(args), WriteGrant, grant)
      const again = yield* Effect.flip(Effect.provideService(tool.call(args), WriteGrant, grant))
      assert.strictEqual(again.reason._tag, "NotGranted")
      assert.deepStrictEqual(written, [args])
    })
  )

  it.effect("opens neither other arguments nor a tool registered anew under the same name", () =>
    Effect.gen(function* () {
      const written: Array<unknown> = []
      const tool = writeTool(written)
      const args = { n: 1 }
      const run = (used: typeof tool, given: unknown) =>
        Effect.flip(Effect.provideService(used.call(given), WriteGrant, WriteGrant.allowOnce(tool, args)))
      assert.strictEqual((yield* run(tool, { n: 1 })).reason._tag, "NotGranted")
      assert.strictEqual(
        (yield* run(writeTool(written), args)).message,
        'no approval was given for this call of tool "shop__order"'
      )
      assert.strictEqual(
        (yield* Effect.flip(Effect.provideService(tool.call(args), WriteGrant, WriteGrant.refused))).reason._tag,
        "NotGranted"
      )
      assert.deepStrictEqual(written, [])
    })
  )
})
