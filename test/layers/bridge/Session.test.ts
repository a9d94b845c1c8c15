import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"
import { BridgeServer, CallDispatcher, MemoryHost } from "../../../src/index.ts"
import { connect, dial, hello, listed, memoryBridge, registerReads, tool } from "../../support/memoryBridge.ts"

const start = (name: string, args: unknown = {}) =>
  MemoryHost.use((host) => host.call(name, args)).pipe(Effect.exit, Effect.forkChild({ startImmediately: true }))

const errorOf = (exit: Exit.Exit<unknown, Error>) => {
  const error = Exit.findErrorOption(exit)
  return error._tag === "Some" ? error.value.message : assert.fail("did not fail")
}

describe("handshake", () => {
  it.effect("cuts a connection that says nothing within the deadline, and no sooner", () =>
    Effect.gen(function* () {
      const silent = yield* dial
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(silent.ended())
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(silent.ended(), 1008)
      assert.deepStrictEqual(silent.frames(), [
        { type: "error", code: "invalid_message", message: "no hello within 5000ms" }
      ])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("leaves a welcomed session alone when the deadline passes", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(application.ended())
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("slows wrong keys down, the more the longer, and never a right one", () =>
    Effect.gen(function* () {
      const first = yield* hello("wrong")
      const second = yield* hello("wrong")
      yield* connect("demo")
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(first.frames(), [{ type: "error", code: "auth_failed", message: "key rejected" }])
      assert.strictEqual(first.ended(), 1008)
      assert.isUndefined(second.ended())
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(second.ended(), 1008)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("lets the oldest silent connection give way when the house is full, so that a flood locks nobody out", () =>
    Effect.gen(function* () {
      const flood = []
      for (let i = 0; i < 5; i++) flood.push(yield* dial)
      yield* connect("demo")
      assert.deepStrictEqual(
        flood.map((silent) => silent.ended()),
        ["terminated", "terminated", undefined, undefined, undefined]
      )
    }).pipe(Effect.provide(memoryBridge({ maxPendingHandshakes: 4 })))
  )

  it.effect("keeps a connection that waits for its refusal before one that is silent", () =>
    Effect.gen(function* () {
      const wrong = yield* hello("wrong")
      const silent = yield* dial
      yield* dial
      assert.isUndefined(wrong.ended())
      assert.strictEqual(silent.ended(), "terminated")
    }).pipe(Effect.provide(memoryBridge({ maxPendingHandshakes: 2 })))
  )

  it.effect("reads nothing after a fatal error, not even in the same write", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      application.send("nonsense")
      application.say({ type: "register", tools: [tool("late")] })
      assert.deepStrictEqual(
        application.frames().map(({ code }) => code),
        ["invalid_message"]
      )
      assert.strictEqual(application.ended(), 1008)
      assert.deepStrictEqual(yield* listed, [])
      // The namespace is free at once, whether or not the other side answers the close.
      yield* connect("demo")
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("takes one hello per connection", () =>
    Effect.gen(function* () {
      const application = yield* hello("wrong")
      application.say({ type: "hello", protocol: 5, key: "demo-key" })
      assert.deepStrictEqual(application.frames(), [
        { type: "error", code: "invalid_message", message: "hello is only valid as the first frame" }
      ])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* (yield* BridgeServer).sessions, [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect.each(["é".repeat(64), "", "demo-key\u0000", "x".repeat(15_000)])("survives the key %j", (key) =>
    Effect.gen(function* () {
      const application = yield* hello(key)
      yield* TestClock.adjust("1 second")
      assert.deepInclude(application.frames()[0], { code: "auth_failed" })
      yield* connect("demo")
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("reads little before the welcome and maxFrameBytes after it", () =>
    Effect.gen(function* () {
      const early = yield* dial
      early.send(`{"type":"hello","pad":"${"x".repeat(16 * 1024)}"}`)
      assert.strictEqual(early.ended(), 1009)
      const application = yield* connect("demo")
      application.say({ type: "pong", pad: "x".repeat(90_000) })
      assert.isUndefined(application.ended())
      application.say({ type: "pong", pad: "x".repeat(110_000) })
      assert.strictEqual(application.ended(), 1009)
    }).pipe(Effect.provide(memoryBridge({ maxFrameBytes: 100_000 })))
  )

  it.effect("refuses binary messages in both phases", () =>
    Effect.gen(function* () {
      for (const application of [yield* dial, yield* connect("demo")]) {
        application.sendBinary()
        assert.strictEqual(application.ended(), 1003)
      }
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("one session per namespace", () => {
  it.effect("refuses a second connection while the first answers", () =>
    Effect.gen(function* () {
      const incumbent = yield* connect("demo")
      const newcomer = yield* hello("demo-key")
      assert.deepStrictEqual(incumbent.frames(), [{ type: "ping" }])
      incumbent.say({ type: "pong" })
      assert.deepStrictEqual(newcomer.frames(), [
        {
          type: "error",
          code: "duplicate_connection",
          message: 'another connection already holds the "demo" frontend-tools session; close it first'
        }
      ])
      assert.strictEqual(newcomer.ended(), 1008)
      assert.isUndefined(incumbent.ended())
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("replaces a first connection that does not answer within a second", () =>
    Effect.gen(function* () {
      const incumbent = yield* connect("demo")
      registerReads(incumbent, "old")
      const inFlight = yield* start("demo__old")
      const newcomer = yield* hello("demo-key")
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(newcomer.frames(), [])
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(incumbent.ended(), "terminated")
      assert.deepInclude(newcomer.frames()[0], { type: "welcome", namespace: "demo" })
      assert.strictEqual(
        errorOf(yield* Fiber.join(inFlight)),
        "frontend-tools connection closed before the call settled"
      )
      assert.deepStrictEqual(yield* listed, [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("welcomes exactly one of several that come back at once", () =>
    Effect.gen(function* () {
      yield* connect("demo")
      const newcomers = [yield* hello("demo-key"), yield* hello("demo-key"), yield* hello("demo-key")]
      yield* TestClock.adjust("1 second")
      for (const newcomer of newcomers) if (newcomer.ended() === undefined) newcomer.say({ type: "pong" })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(newcomers.map((newcomer) => newcomer.ended()).sort(), [1008, 1008, undefined])
      assert.strictEqual((yield* (yield* BridgeServer).sessions).length, 1)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("welcomes the newcomer at once when the incumbent leaves while it is asked", () =>
    Effect.gen(function* () {
      const incumbent = yield* connect("demo")
      const newcomer = yield* hello("demo-key")
      incumbent.close()
      assert.deepInclude(newcomer.frames()[0], { type: "welcome" })
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("liveness", () => {
  it.effect("pings every 15 seconds and drops a session that stays silent", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      registerReads(application, "read")
      yield* TestClock.adjust("14999 millis")
      assert.deepStrictEqual(application.frames(), [])
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(application.frames(), [{ type: "ping" }])
      yield* TestClock.adjust("14999 millis")
      assert.isUndefined(application.ended())
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(application.ended(), "terminated")
      assert.deepStrictEqual(yield* listed, [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("takes any frame for a sign of life", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      for (let i = 0; i < 10; i++) {
        yield* TestClock.adjust("15 seconds")
        application.say({ type: "callResult", callId: "unknown", ok: true })
      }
      assert.isUndefined(application.ended())
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("registering", () => {
  it.effect("answers in order, and a faulty batch has no effect and is not the end", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      application.say({ type: "register", tools: [tool("a")] })
      application.say({ type: "register", tools: [tool("b"), tool("c d")] })
      application.say({ type: "register", tools: [tool("b")] })
      application.say({ type: "unregister", names: ["nope", "b"] })
      assert.deepStrictEqual(application.frames(), [
        { type: "registered", names: ["demo__a"] },
        { type: "error", code: "invalid_tool", message: 'tool name "c d" must match ^[A-Za-z0-9_-]{1,64}$' },
        { type: "registered", names: ["demo__b"] },
        { type: "unregistered", names: ["b"] }
      ])
      assert.deepStrictEqual(yield* listed, ["demo__a"])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("takes everything off the host in the very moment the application leaves", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      // More tools than the steps after which a fiber lets others run.
      const names = Array.from({ length: 2000 }, (_, i) => `t${i}`)
      registerReads(application, ...names)
      assert.strictEqual((yield* listed).length, names.length)
      application.close()
      const { tools } = yield* MemoryHost
      assert.deepStrictEqual(Effect.runSync(tools), [])
      assert.deepStrictEqual(Effect.runSync((yield* BridgeServer).sessions), [])
    }).pipe(Effect.provide(memoryBridge({ maxTools: 5000 })))
  )

  it.effect("does not cut off calls in flight of a tool that is unregistered", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      registerReads(application, "read")
      const call = yield* start("demo__read")
      const [frame] = application.frames()
      application.say({ type: "unregister", names: ["read"] })
      application.say({ type: "callResult", callId: frame?.callId, ok: true, result: 7 })
      assert.deepStrictEqual(yield* Fiber.join(call), Exit.succeed(7))
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("tells a client that two names lead to one tool", () =>
    Effect.gen(function* () {
      const application = yield* connect("demo")
      application.say({ type: "register", tools: [tool("a"), tool("a")] })
      assert.deepInclude(application.frames()[0], {
        message: 'tool "a" resolves to public name "demo__a" that is already registered by this connection'
      })
      assert.deepStrictEqual(yield* listed, [])
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("the end of the bridge", () => {
  it.effect("ends every session in order, rejects what is in flight and leaves nothing behind", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(memoryBridge(), scope)
      const within = Effect.provideContext(context)
      const demo = yield* within(connect("demo"))
      const shop = yield* within(connect("shop"))
      const pending = yield* within(dial)
      registerReads(demo, "read")
      const call = yield* within(start("demo__read"))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(
        [demo, shop, pending].map((application) => application.ended()),
        [1001, 1001, 1001]
      )
      assert.strictEqual(errorOf(yield* Fiber.join(call)), "frontend-tools connection closed before the call settled")
      assert.deepStrictEqual(yield* within(listed), [])
      assert.strictEqual(yield* within(CallDispatcher.use((dispatcher) => dispatcher.inFlight)), 0)
      for (const { session } of [demo, shop, pending]) assert.isDefined(session.pollUnsafe())
    })
  )

  it.effect("leaves no fiber behind, of sessions that ended by themselves and of the bridge", () =>
    Effect.gen(function* () {
      let running = 0
      const counting = Layer.succeed(Metric.FiberRuntimeMetrics, {
        recordFiberStart: () => {
          running++
        },
        recordFiberEnd: () => {
          running--
        }
      })
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(memoryBridge(), scope).pipe(Effect.provide(counting))
      const within = Effect.provideContext(
        Context.add(context, Metric.FiberRuntimeMetrics, yield* Effect.provide(Metric.FiberRuntimeMetrics, counting))
      )
      const idle = running
      for (let i = 0; i < 100; i++) {
        const demo = yield* within(connect("demo"))
        registerReads(demo, "read")
        yield* within(start("demo__read"))
        yield* within(hello("wrong"))
        demo.close()
      }
      yield* TestClock.adjust("1 minute")
      assert.isAbove(idle, 0)
      assert.strictEqual(running, idle)
      yield* within(connect("demo"))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(running, 0)
    })
  )
})
