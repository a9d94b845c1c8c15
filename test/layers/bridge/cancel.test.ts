/** The extension `cancel` (bridge protocol, part a.5), from the bridge's side. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { MemoryHost } from "../../../src/index.ts"
import { connect, dial, memoryBridge, registerReads } from "../../support/memoryBridge.ts"

const start = (name: string) =>
  MemoryHost.use((host) => host.call(name, {})).pipe(Effect.exit, Effect.forkChild({ startImmediately: true }))

const hello = Effect.fnUntraced(function* (features: unknown) {
  const application = yield* dial
  application.say({ type: "hello", protocol: 5, key: "demo-key", features })
  const [welcome] = application.frames()
  return { application, welcome }
})

const withCancel = Effect.gen(function* () {
  const { application } = yield* hello(["cancel"])
  registerReads(application, "read")
  return application
})

describe("cancel", () => {
  it.effect("is agreed on in hello and welcome, with nothing that one side does not know", () =>
    Effect.gen(function* () {
      const { application, welcome } = yield* hello(["telepathy", "cancel", 7])
      assert.deepStrictEqual(welcome, {
        type: "welcome",
        protocol: 5,
        server: "frontend-tools-bridge",
        namespace: "demo",
        features: ["cancel"],
        limits: { maxFrameBytes: 12_345 }
      })
      application.close()
      for (const features of [undefined, [], ["telepathy"], "cancel", { cancel: true }, null]) {
        const other = yield* hello(features)
        assert.deepStrictEqual(Object.keys(other.welcome ?? {}), ["type", "protocol", "server", "namespace"])
        other.application.close()
      }
    }).pipe(Effect.provide(memoryBridge({ maxFrameBytes: 12_345 })))
  )

  it.effect("tells the application that the caller gave up, at once", () =>
    Effect.gen(function* () {
      const application = yield* withCancel
      const caller = yield* start("demo__read")
      const [call] = application.frames()
      yield* Fiber.interrupt(caller)
      assert.deepStrictEqual(application.frames(), [{ type: "cancel", callId: call?.callId, reason: "aborted" }])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("tells the application that the deadline has passed", () =>
    Effect.gen(function* () {
      const application = yield* withCancel
      yield* start("demo__read")
      const [call] = application.frames()
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(application.frames(), [{ type: "cancel", callId: call?.callId, reason: "timeout" }])
    }).pipe(Effect.provide(memoryBridge({ callTimeoutMs: 1000 })))
  )

  it.effect("is not sent for a call that was answered, nor twice", () =>
    Effect.gen(function* () {
      const application = yield* withCancel
      const answered = yield* start("demo__read")
      const [call] = application.frames()
      application.say({ type: "callResult", callId: call?.callId, ok: true, result: 1 })
      yield* Fiber.interrupt(answered)
      const aborted = yield* start("demo__read")
      yield* Fiber.interrupt(aborted)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(
        application
          .frames()
          .map(({ type }) => type)
          .filter((type) => type !== "ping"),
        ["call", "cancel"]
      )
    }).pipe(Effect.provide(memoryBridge({ callTimeoutMs: 1000, pingIntervalMs: 600_000 })))
  )

  it.effect("is not sent to an application that did not ask for it", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      registerReads(application, "read")
      yield* Fiber.interrupt(yield* start("demo__read"))
      yield* start("demo__read")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(
        application.frames().map(({ type }) => type),
        ["call", "call"]
      )
    }).pipe(Effect.provide(memoryBridge({ callTimeoutMs: 1000 })))
  )
})
