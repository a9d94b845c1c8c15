import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { dynamicProtocols } from "../../../src/layers/host/McpProtocols.ts"

describe("dynamicProtocols", () => {
  const protocols = dynamicProtocols({ list: () => [], find: () => undefined })

  it("speaks every revision, the newest first", () => {
    assert.deepStrictEqual(
      protocols.map(({ protocolVersion }) => protocolVersion),
      ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    )
  })

  it.effect("says so when the server's inside is not the one it knows", () =>
    Effect.gen(function* () {
      for (const core of [undefined, {}, { tools: { list: () => Effect.void } }]) {
        const exit = yield* Effect.exit(
          protocols[0].installHandlers(core, undefined, {}) as Effect.Effect<void> // the adapter's own type is unknown
        )
        assert.isTrue(Exit.isFailure(exit) && Cause.pretty(exit.cause).includes("effect-frontend-tools does not know"))
      }
    })
  )
})
