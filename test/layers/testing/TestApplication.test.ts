import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { ApplicationError, BridgeServer, CallDispatcher, MemoryHost, Namespace, Roster } from "../../../src/index.ts"
import { TestApplication, TestBridge, TestTool } from "../../../src/testing.ts"
import { listed } from "../../support/memoryBridge.ts"

const bridge = TestBridge.layerMemory({ callTimeoutMs: 10_000 })

const call = (name: string, args: unknown = {}) => MemoryHost.use((host) => host.call(name, args))

const reasonOf = (name: string, args?: unknown) => Effect.map(Effect.flip(call(name, args)), ({ reason }) => reason)

const cart = TestTool.read({ name: "cart", run: () => Effect.succeed(["tea"]) })

const find = TestTool.read({
  name: "find",
  parameters: Schema.Struct({ query: Schema.String }),
  run: ({ query }) => Effect.succeed(query.toUpperCase())
})

describe("TestApplication", () => {
  it.effect("registers its tools and answers their calls, without time passing", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart, find] })
      assert.deepStrictEqual(yield* listed, ["shop__cart", "shop__find"])
      assert.deepStrictEqual(yield* call("shop__cart"), ["tea"])
      assert.deepStrictEqual(yield* call("shop__find", { query: "cake" }), "CAKE")
      assert.deepStrictEqual(
        shop.calls().map(({ args, name }) => [String(name), args]),
        [
          ["cart", {}],
          ["find", { query: "cake" }]
        ]
      )
    }).pipe(Effect.provide(bridge))
  )

  it.effect("says what its arguments have to be, and holds calls to it", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("shop", { tools: [find] })
      const tool = MemoryHost.use((host) => Effect.succeed(host.tool("shop__find")))
      assert.deepInclude(Option.getOrThrow(yield* tool).parametersSchema, {
        type: "object",
        required: ["query"],
        properties: { query: { type: "string" } }
      })
      const reason = yield* reasonOf("shop__find", { query: 1 })
      assert.include(reason.message, "frontend-tools call failed (invalid_args)")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("tells how a tool failed", () =>
    Effect.gen(function* () {
      const failing = (name: string, error: unknown) => TestTool.read({ name, run: () => Effect.fail(error) })
      yield* TestApplication.connect("shop", {
        tools: [
          failing("coded", new ApplicationError({ code: "denied", detail: "not today" })),
          failing("plain", new Error("out of tea")),
          TestTool.read({ name: "defect", run: () => Effect.die(new Error("a bug")) }),
          TestTool.read({ name: "thrower", run: () => JSON.parse("}") })
        ]
      })
      const messages = []
      for (const name of ["coded", "plain", "defect"]) messages.push((yield* reasonOf(`shop__${name}`)).message)
      assert.deepStrictEqual(messages, [
        "frontend-tools call failed (denied): not today",
        "frontend-tools call failed (internal): out of tea",
        "frontend-tools call failed (internal): a bug"
      ])
      assert.include((yield* reasonOf("shop__thrower")).message, "frontend-tools call failed (internal): ")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("runs its tools with the services of the test", () => {
    class Stock extends Context.Service<Stock, { readonly left: number }>()("test/Stock") {}
    return Effect.gen(function* () {
      yield* TestApplication.connect("shop", {
        tools: [TestTool.read({ name: "left", run: () => Stock.use(({ left }) => Effect.succeed(left)) })]
      })
      assert.strictEqual(yield* call("shop__left"), 3)
    }).pipe(Effect.provide(bridge), Effect.provide(Layer.succeed(Stock, { left: 3 })))
  })

  it.effect("registers and takes back", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop")
      assert.deepStrictEqual(yield* shop.register(cart, find), ["shop__cart", "shop__find"])
      assert.deepStrictEqual(yield* shop.unregister("cart", "never"), ["cart"])
      assert.deepStrictEqual(yield* listed, ["shop__find"])
      const refused = yield* Effect.flip(shop.register(cart, find))
      assert.strictEqual(refused.code, "invalid_tool")
      assert.include(refused.message, "already registered by this connection")
      assert.strictEqual(yield* call("shop__find", { query: "still there" }), "STILL THERE")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("drops: its tools are gone, and its calls have failed, when that returns", () =>
    Effect.gen(function* () {
      let interrupted = false
      const hang = TestTool.read({
        name: "hang",
        run: () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              interrupted = true
            })
          )
      })
      const shop = yield* TestApplication.connect("shop", { tools: [hang] })
      const calling = yield* Effect.forkChild(reasonOf("shop__hang"), { startImmediately: true })
      yield* shop.drop
      assert.strictEqual((yield* Fiber.join(calling))._tag, "ConnectionClosed")
      assert.deepStrictEqual(yield* listed, [])
      assert.isTrue(interrupted)
      assert.strictEqual(yield* shop.ended, "left")
      assert.strictEqual((yield* Effect.flip(shop.register(cart))).code, "disconnected")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("stops what nobody waits for, where it knows how", () =>
    Effect.gen(function* () {
      let interrupted = 0
      const stopped = Effect.sync(() => {
        interrupted++
      })
      const hang = TestTool.read({ name: "hang", run: () => Effect.onInterrupt(Effect.never, () => stopped) })
      const shop = yield* TestApplication.connect("shop", { tools: [hang] })
      const old = yield* TestApplication.connect("old", { tools: [hang], features: [] })
      for (const name of ["shop__hang", "old__hang"]) {
        yield* Fiber.interrupt(yield* Effect.forkChild(call(name), { startImmediately: true }))
      }
      assert.deepStrictEqual(shop.cancels(), [{ callId: shop.calls()[0]?.callId ?? "", reason: "aborted" }])
      assert.deepStrictEqual(old.cancels(), [])
      assert.strictEqual(interrupted, 1)
    }).pipe(Effect.provide(bridge))
  )

  it.effect("drops from inside one of its own tools", () =>
    Effect.gen(function* () {
      const self = yield* Deferred.make<TestApplication.TestApplication>()
      const crash = TestTool.read({
        name: "crash",
        run: () => Effect.flatMap(Deferred.await(self), ({ drop }) => drop)
      })
      yield* Deferred.succeed(self, yield* TestApplication.connect("shop", { tools: [crash] }))
      assert.strictEqual((yield* reasonOf("shop__crash"))._tag, "ConnectionClosed")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("leaves when its scope closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* TestApplication.connect("shop", { tools: [cart] }).pipe(Scope.provide(scope))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* BridgeServer.use(({ sessions }) => sessions), [])
    }).pipe(Effect.provide(bridge))
  )

  it.effect("reloads with the tools it had", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      yield* shop.register(find)
      yield* shop.unregister("cart")
      const line = shop.line()
      yield* shop.reload
      assert.notStrictEqual(shop.line(), line)
      assert.deepStrictEqual(yield* listed, ["shop__find"])
      assert.strictEqual(yield* call("shop__find", { query: "b" }), "B")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("is as slow as it is told", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      yield* shop.slow("2 seconds")
      const calling = yield* Effect.forkChild(call("shop__cart"))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(calling.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(calling), ["tea"])
      yield* shop.behave
      assert.deepStrictEqual(yield* call("shop__cart"), ["tea"])
    }).pipe(Effect.provide(bridge))
  )

  it.effect("answers too late, which changes nothing", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      yield* shop.hold
      const calling = yield* Effect.forkChild(reasonOf("shop__cart"))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(calling))._tag, "DeadlineExceeded")
      assert.strictEqual(yield* shop.release, 1)
      assert.deepStrictEqual(yield* call("shop__cart"), ["tea"])
      assert.strictEqual(yield* CallDispatcher.use(({ inFlight }) => inFlight), 0)
      assert.deepStrictEqual(shop.errors(), [])
    }).pipe(Effect.provide(bridge))
  )

  it.effect("answers in time after it was held", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      yield* shop.hold
      const calling = yield* Effect.forkChild(call("shop__cart"), { startImmediately: true })
      assert.isUndefined(calling.pollUnsafe())
      yield* shop.behave
      assert.deepStrictEqual(yield* Fiber.join(calling), ["tea"])
    }).pipe(Effect.provide(bridge))
  )

  it.effect("is refused with a key that nobody admitted, or that is another's", () =>
    Effect.gen(function* () {
      const connecting = yield* Effect.forkChild(Effect.flip(TestApplication.connect("shop", { key: "wrong" })))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(connecting)).code, "auth_failed")
      const roster = yield* Roster
      yield* roster.register(Namespace.make("other"), TestApplication.testKey("shop"))
      // The key holds, for another namespace: that is who it is.
      const other = yield* TestApplication.connect("shop", { tools: [cart] })
      assert.deepStrictEqual(yield* listed, ["other__cart"])
      yield* other.drop
    }).pipe(Effect.scoped, Effect.provide(bridge))
  )

  it.effect("says so when the roster refuses its namespace", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("a")
      const refused = yield* Effect.flip(TestApplication.connect("a__b"))
      assert.strictEqual(refused.code, "roster")
      assert.include(refused.message, 'namespace "a__b" collides with "a"')
    }).pipe(Effect.provide(bridge))
  )

  it.effect("has its tools refused as a batch", () =>
    Effect.gen(function* () {
      const bad = TestTool.read({ name: "bad", parametersSchema: { type: "string" }, run: () => Effect.void })
      const refused = yield* Effect.flip(TestApplication.connect("shop", { tools: [cart, bad] }))
      assert.strictEqual(refused.code, "invalid_tool")
      assert.deepStrictEqual(yield* listed, [])
    }).pipe(Effect.provide(bridge))
  )

  for (const [how, code] of [
    ["garbage", 1008],
    ["binary", 1003],
    ["helloAgain", 1008],
    ["strangeFrame", 1008]
  ] as const) {
    it.effect(`loses its session by ${how}`, () =>
      Effect.gen(function* () {
        const shop = yield* TestApplication.connect("shop", { tools: [cart] })
        const other = yield* TestApplication.connect("other", { tools: [cart] })
        yield* shop.misbehave(how)
        assert.strictEqual(yield* shop.ended, code)
        assert.strictEqual(shop.errors()[0]?.code, "invalid_message")
        assert.deepStrictEqual(yield* listed, ["other__cart"])
        yield* other.drop
      }).pipe(Effect.provide(bridge))
    )
  }

  it.effect("changes nothing with answers that nobody asked for, or a second time", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      const said: Array<string> = []
      const { send } = shop.line()
      yield* shop.misbehave("answersNobodyAsked")
      yield* shop.misbehave("answersTwice")
      for (let i = 0; i < 3; i++) said.push(JSON.stringify(yield* call("shop__cart")))
      assert.deepStrictEqual(said, ['["tea"]', '["tea"]', '["tea"]'])
      assert.strictEqual(shop.calls().length, 3)
      assert.deepStrictEqual(shop.errors(), [])
      send("}{")
      assert.strictEqual(yield* shop.ended, 1008)
    }).pipe(Effect.provide(bridge))
  )

  it.effect("is dropped when it is silent, and stays when it answers pings", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop")
      yield* TestClock.adjust("2 minutes")
      assert.isUndefined(shop.line().session.pollUnsafe())
      yield* shop.misbehave("silence")
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* shop.ended, "terminated")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("is cut off when it does not read", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      yield* shop.misbehave("stopsReading")
      assert.strictEqual((yield* reasonOf("shop__cart"))._tag, "Overloaded")
      assert.strictEqual(yield* shop.ended, "terminated")
    }).pipe(Effect.provide(bridge))
  )

  it.effect("runs a thousand connects, calls and drops in less than a second", () => {
    const thousand = Effect.gen(function* () {
      const start = performance.now()
      for (let i = 0; i < 1000; i++) {
        const application = yield* TestApplication.connect(`app${i}`, { tools: [find] })
        assert.strictEqual(yield* call(`app${i}__find`, { query: "x" }), "X")
        yield* application.drop
      }
      assert.deepStrictEqual(yield* listed, [])
      return performance.now() - start
    }).pipe(Effect.scoped, Effect.provide(TestBridge.layerMemory(), { local: true }))
    return Effect.gen(function* () {
      // A machine that is busy with something else gets further chances.
      let fastest = yield* thousand
      for (let i = 0; i < 9 && fastest >= 1000; i++) fastest = Math.min(fastest, yield* thousand)
      assert.isBelow(fastest, 1000)
    })
  })
})
