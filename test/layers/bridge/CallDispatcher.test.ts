import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { CallDispatcher, type CallError, MemoryHost, MirrorRegistry } from "../../../src/index.ts"
import { connect, memoryBridge, registerReads, tool } from "../../support/memoryBridge.ts"

const call = (name: string, args: unknown = {}) => MemoryHost.use((host) => host.call(name, args))

const start = (name: string, args?: unknown) =>
  call(name, args).pipe(Effect.exit, Effect.forkChild({ startImmediately: true }))

const failureOf = (exit: Exit.Exit<unknown, CallError>) => {
  const error = Exit.findErrorOption(exit)
  return error._tag === "Some" ? error.value : assert.fail("did not fail with a CallError")
}

const inFlight = CallDispatcher.use((dispatcher) => dispatcher.inFlight)

describe("CallDispatcher", () => {
  it.effect("hands each answer to its caller, in whatever order they come", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const first = yield* start("demo__read", { q: "a" })
      const second = yield* start("demo__read", { q: "b" })
      const [one, two] = demo.frames()
      assert.deepStrictEqual(
        [one, two].map((frame) => [frame?.type, frame?.name, frame?.args]),
        [
          ["call", "read", { q: "a" }],
          ["call", "read", { q: "b" }]
        ]
      )
      assert.match(String(one?.callId), /^[0-9a-f-]{36}$/)
      demo.say({ type: "callResult", callId: two?.callId, ok: true, result: "b" })
      demo.say({ type: "callResult", callId: one?.callId, ok: true, result: "a" })
      assert.deepStrictEqual(yield* Fiber.join(first), Exit.succeed("a"))
      assert.deepStrictEqual(yield* Fiber.join(second), Exit.succeed("b"))
      assert.strictEqual(yield* inFlight, 0)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("takes an answer that comes before `send` returns", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      demo.listen((text) => demo.say({ type: "callResult", callId: JSON.parse(text).callId, ok: true, result: 1 }))
      assert.strictEqual(yield* call("demo__read"), 1)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("makes a result that is absent null", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      demo.listen((text) => demo.say({ type: "callResult", callId: JSON.parse(text).callId, ok: true }))
      assert.isNull(yield* call("demo__read"))
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("passes the application's error on, with a known code and a bounded text", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const fail = (code: string, message: string) => {
        demo.listen((text) =>
          demo.say({ type: "callResult", callId: JSON.parse(text).callId, ok: false, error: { code, message } })
        )
        return Effect.map(Effect.exit(call("demo__read")), failureOf)
      }
      const denied = yield* fail("denied", "not logged in")
      assert.strictEqual(denied.message, "frontend-tools call failed (denied): not logged in")
      assert.deepInclude(denied.reason, { _tag: "ApplicationError", code: "denied" })
      assert.strictEqual((yield* fail("made_up", "x")).message, "frontend-tools call failed (internal): x")
      assert.isBelow((yield* fail("internal", "x".repeat(5_000_000))).message.length, 5000)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("ends a call at its deadline, and drops what comes later", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const fiber = yield* start("demo__read")
      const [frame] = demo.frames()
      yield* TestClock.adjust("2999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 milli")
      const error = failureOf(yield* Fiber.join(fiber))
      assert.strictEqual(error.message, 'frontend-tools call to "read" timed out after 3000ms without a callResult')
      assert.strictEqual(error.reason._tag, "DeadlineExceeded")
      demo.say({ type: "callResult", callId: frame?.callId, ok: true, result: "late" })
      demo.say({ type: "callResult", callId: frame?.callId, ok: true, result: "again" })
      assert.isUndefined(demo.ended())
      assert.strictEqual(yield* inFlight, 0)
    }).pipe(Effect.provide(memoryBridge({ callTimeoutMs: 3000 })))
  )

  it.effect("lets the caller abort at once, and drops what comes later", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const fiber = yield* start("demo__read")
      const [frame] = demo.frames()
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* inFlight, 0)
      demo.say({ type: "callResult", callId: frame?.callId, ok: true })
      assert.isUndefined(demo.ended())
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("never sends the call of a caller that has given up already", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const fiber = yield* Effect.forkChild(call("demo__read"))
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(demo.frames(), [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("rejects what is in flight when the application leaves, and refuses a retry from there", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const read = (yield* MirrorRegistry).lookup("demo__read")
      assert.strictEqual(read?.access, "read")
      const again = read?.access === "read" ? read.call({}) : assert.fail("no read tool")
      const fiber = yield* again.pipe(
        // Runs in the middle of the session's end.
        Effect.catch((first) => Effect.map(Effect.flip(again), (second) => [first.message, second.message])),
        Effect.forkChild({ startImmediately: true })
      )
      demo.close()
      assert.deepStrictEqual(yield* Fiber.join(fiber), [
        "frontend-tools connection closed before the call settled",
        'frontend-tools call to "read" failed: connection closed'
      ])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("does not take an answer from another session", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      const shop = yield* connect("shop")
      registerReads(demo, "read")
      const fiber = yield* start("demo__read")
      const [frame] = demo.frames()
      shop.say({ type: "callResult", callId: frame?.callId, ok: true, result: "stolen" })
      assert.isUndefined(fiber.pollUnsafe())
      demo.say({ type: "callResult", callId: frame?.callId, ok: true, result: "own" })
      assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.succeed("own"))
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("refuses arguments that JSON cannot carry, and sends nothing", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      const cycle: { self?: unknown } = {}
      cycle.self = cycle
      for (const args of [{ n: 1n }, cycle]) {
        const error = failureOf(yield* Effect.exit(call("demo__read", args)))
        assert.deepInclude(error.reason, { _tag: "NotJson", what: "arguments" })
      }
      assert.deepStrictEqual(demo.frames(), [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("drops an application that does not read, instead of filling the memory", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      registerReads(demo, "read")
      demo.stall(10_001)
      const error = failureOf(yield* Effect.exit(call("demo__read")))
      assert.strictEqual(error.reason._tag, "Overloaded")
      assert.strictEqual(demo.ended(), "terminated")
    }).pipe(Effect.provide(memoryBridge({ maxBufferedBytes: 10_000 })))
  )

  it.effect("runs no write without a grant", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      demo.say({ type: "register", tools: [tool("order"), tool("peek", { readOnly: true })] })
      demo.take()
      const denied = failureOf(yield* Effect.exit(call("demo__order")))
      assert.strictEqual(denied.reason._tag, "NotGranted")
      assert.deepStrictEqual(demo.frames(), [])

      demo.listen((text) => demo.say({ type: "callResult", callId: JSON.parse(text).callId, ok: true, result: "done" }))
      const asked: Array<unknown> = []
      const done = yield* MemoryHost.use((host) =>
        host.call("demo__order", { n: 1 }, ({ label }, args) =>
          Effect.sync(() => {
            asked.push([label, args])
            return true
          })
        )
      )
      assert.strictEqual(done, "done")
      assert.deepStrictEqual(asked, [["demo.order", { n: 1 }]])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("keeps the calls of a slow application from those of another", () =>
    Effect.gen(function* () {
      const slow = yield* connect("demo")
      const quick = yield* connect("shop")
      registerReads(slow, "read")
      registerReads(quick, "read")
      quick.listen((text) => quick.say({ type: "callResult", callId: JSON.parse(text).callId, ok: true, result: 1 }))
      const waiting = yield* start("demo__read")
      assert.strictEqual(yield* call("shop__read"), 1)
      assert.isUndefined(waiting.pollUnsafe())
    }).pipe(Effect.provide(memoryBridge()))
  )
})
