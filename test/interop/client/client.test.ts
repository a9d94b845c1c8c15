/** Our client over real sockets, against our bridge and against the published one. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Schedule, Schema, Scope } from "effect"
import { FrontendToolsClient, Tool } from "../../../src/client.ts"
import { MemoryHost, WebSocketListener } from "../../../src/index.ts"
import { NodeWebSocket } from "../../../src/node.ts"
import { createFrontendToolsClient, type FrontendTool } from "../../../src/promise.ts"
import { peerBridge } from "../../support/peerBridge.ts"
import { socketBridge } from "../../support/socketBridge.ts"

interface RunningBridge {
  readonly port: number
  readonly listed: Effect.Effect<ReadonlyArray<string>>
  readonly call: (name: string, args?: unknown) => Effect.Effect<unknown, Error>
}

type StartBridge = (options: {
  readonly port?: number
  readonly maxTools?: number
}) => Effect.Effect<RunningBridge, unknown, Scope.Scope>

const ourBridge: StartBridge = Effect.fnUntraced(function* (options) {
  const scope = yield* Effect.scope
  const context = yield* Layer.buildWithScope(Layer.fresh(socketBridge(options)), scope)
  const host = Context.get(context, MemoryHost)
  return {
    port: Context.get(context, WebSocketListener).port,
    listed: Effect.map(host.tools, (tools) => tools.map(({ publicName }) => String(publicName))),
    call: (name, args = {}) => host.call(name, args)
  }
})

const tool = (name: string, extra: Partial<FrontendTool> = {}): FrontendTool => ({
  name,
  description: `Does ${name}.`,
  parametersSchema: { type: "object" },
  readOnly: true,
  execute: (args) => ({ [name]: args }),
  ...extra
})

const urlOf = (port: number) => `ws://127.0.0.1:${port}`

/** A connected client of the Promise API. */
const connect = Effect.fnUntraced(function* (port: number) {
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => createFrontendToolsClient({ url: urlOf(port), key: "demo-key" })),
    (client) => Effect.sync(client.disconnect)
  )
  yield* Effect.promise(() => client.connect())
  return client
})

/** A client of the Effect API. */
const connectEffect = (port: number) =>
  FrontendToolsClient.make({ url: urlOf(port), key: "demo-key", socket: NodeWebSocket })

const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>, when: (value: A) => boolean) =>
  effect.pipe(
    Effect.filterOrFail(when),
    Effect.retry(Schedule.spaced("10 millis")),
    Effect.timeout("10 seconds"),
    Effect.orDie
  )

const own = (names: ReadonlyArray<string>) => names.filter((name) => name.startsWith("demo__"))

const readTool = (name: string, handler: () => Effect.Effect<unknown>) =>
  Tool.make({ name, description: "", parameters: Schema.Struct({}), readOnly: true, handler })

const suite = (name: string, start: StartBridge) => {
  describe(name, () => {
    it.live("takes tools of the Promise API, calls them, lets them go", () =>
      Effect.gen(function* () {
        const bridge = yield* start({})
        const client = yield* connect(bridge.port)
        assert.deepStrictEqual([client.state, client.namespace], ["connected", "demo"])
        const failing = tool("fail", { execute: () => Promise.reject(new Error("out of milk")) })
        const names = yield* Effect.promise(() => client.registerTools([tool("cart"), failing]))
        assert.deepStrictEqual(names, ["demo__cart", "demo__fail"])
        assert.deepStrictEqual(yield* bridge.call("demo__cart", { n: 1 }), { cart: { n: 1 } })
        const error = yield* Effect.flip(bridge.call("demo__fail"))
        assert.strictEqual(error.message, "frontend-tools call failed (internal): out of milk")
        assert.deepStrictEqual(yield* Effect.promise(() => client.unregisterTools(["fail", "nope"])), ["fail"])
        assert.deepStrictEqual(own(yield* bridge.listed), ["demo__cart"])
        client.disconnect()
        yield* eventually(bridge.listed, (names) => own(names).length === 0)
      })
    )

    it.live("refuses a batch, which rejects its own promise and nothing else", () =>
      Effect.gen(function* () {
        const bridge = yield* start({ maxTools: 2 })
        const client = yield* connect(bridge.port)
        const batches = [[tool("a")], [tool("b"), tool("c")], [tool("d")]]
        const [first, refused, last] = yield* Effect.promise(() =>
          Promise.allSettled(batches.map((batch) => client.registerTools(batch)))
        )
        assert.deepStrictEqual(
          [first, last].map((settled) => settled?.status === "fulfilled" && settled.value),
          [["demo__a"], ["demo__d"]]
        )
        assert.strictEqual(refused?.status === "rejected" && refused.reason.code, "too_many_tools")
        assert.deepStrictEqual(own(yield* bridge.listed), ["demo__a", "demo__d"])
        assert.strictEqual(client.state, "connected")
      })
    )

    it.live("takes tools of the Effect API for as long as their scope is open", () =>
      Effect.gen(function* () {
        const bridge = yield* start({})
        const client = yield* connectEffect(bridge.port)
        const scope = yield* Scope.make()
        const double = Tool.make({
          name: "double",
          description: "Doubles a number.",
          parameters: Schema.Struct({ n: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })) }),
          success: Schema.Struct({ n: Schema.Int }),
          readOnly: true,
          handler: ({ n }) => Effect.succeed({ n: n * 2 })
        })
        const { publicNames } = yield* client.register(double).pipe(Scope.provide(scope))
        assert.deepStrictEqual(yield* publicNames, ["demo__double"])
        assert.deepStrictEqual(yield* bridge.call("demo__double", { n: 4 }), { n: 8 })
        const error = yield* Effect.flip(bridge.call("demo__double", { n: 10 }))
        assert.match(error.message, /\(invalid_args\): arguments\.n: /)
        yield* Scope.close(scope, Exit.void)
        yield* eventually(bridge.listed, (names) => own(names).length === 0)
      })
    )

    it.live("has its fifty tools back within two seconds after a restart, of either API", () =>
      Effect.gen(function* () {
        const names = Array.from({ length: 50 }, (_, i) => `tool_${i}`)
        const promised = Effect.fnUntraced(function* (port: number) {
          const client = yield* connect(port)
          client.registerTools(names.map((name) => tool(name))).catch(() => {})
        })
        const effectful = Effect.fnUntraced(function* (port: number) {
          const client = yield* connectEffect(port)
          yield* client.register(...names.map((name) => readTool(name, () => Effect.succeed(name))))
        })
        const restart = Effect.fnUntraced(function* (
          register: (port: number) => Effect.Effect<void, unknown, Scope.Scope>
        ) {
          const scope = yield* Scope.make()
          const bridge = yield* start({}).pipe(Scope.provide(scope))
          yield* register(bridge.port)
          yield* eventually(bridge.listed, (names) => own(names).length === 50)
          yield* Scope.close(scope, Exit.void)
          const again = yield* start({ port: bridge.port })
          const begun = performance.now()
          yield* eventually(again.listed, (names) => own(names).length === 50)
          assert.isBelow(performance.now() - begun, 2000)
          yield* again.call("demo__tool_49")
        }, Effect.scoped)
        yield* Effect.all([restart(promised), restart(effectful)], { concurrency: 2 })
      })
    )

    it.live("goes on with the client when its caller gives up", () =>
      Effect.gen(function* () {
        const bridge = yield* start({})
        const client = yield* connect(bridge.port)
        const started = Promise.withResolvers<void>()
        let end = (_: unknown) => {}
        const hang = tool("hang", {
          execute: () => {
            started.resolve()
            return new Promise((resolve) => {
              end = resolve
            })
          }
        })
        yield* Effect.promise(() => client.registerTools([hang, tool("cart")]))
        const caller = yield* Effect.forkChild(Effect.exit(bridge.call("demo__hang")), { startImmediately: true })
        yield* Effect.promise(() => started.promise)
        yield* Fiber.interrupt(caller)
        end("late")
        assert.deepStrictEqual(yield* bridge.call("demo__cart", 1), { cart: 1 })
        assert.strictEqual(client.state, "connected")
      })
    )
  })
}

suite("our bridge", ourBridge)
suite("the published bridge", peerBridge)

describe("only with our bridge", () => {
  it.live("the signal of a call aborts when its caller gives up, and at the deadline", () =>
    Effect.gen(function* () {
      const { url } = yield* WebSocketListener
      const client = createFrontendToolsClient({ url, key: "demo-key" })
      yield* Effect.acquireRelease(
        Effect.promise(() => client.connect()),
        () => Effect.sync(client.disconnect)
      )
      const calls: Array<AbortSignal> = []
      let started = Promise.withResolvers<void>()
      const hang = tool("hang", {
        execute: (_, { signal }) =>
          new Promise((_, reject) => {
            calls.push(signal)
            signal.addEventListener("abort", () => reject(signal.reason))
            started.resolve()
          })
      })
      yield* Effect.promise(() => client.registerTools([hang]))
      const call = MemoryHost.use((host) => host.call("demo__hang", {})).pipe(Effect.exit)
      const aborted = yield* Effect.forkChild(call, { startImmediately: true })
      yield* Effect.promise(() => started.promise)
      yield* Fiber.interrupt(aborted)
      yield* eventually(
        Effect.sync(() => calls[0]?.reason?.name),
        (name) => name === "AbortError"
      )
      started = Promise.withResolvers<void>()
      yield* call
      yield* eventually(
        Effect.sync(() => calls[1]?.reason?.name),
        (name) => name === "TimeoutError"
      )
    }).pipe(Effect.provide(socketBridge({ callTimeoutMs: 200 })))
  )

  it.live("ten thousand calls leave nothing behind in the client", () =>
    Effect.gen(function* () {
      const { url } = yield* WebSocketListener
      const scope = yield* Scope.make()
      const sockets: Array<NodeWebSocket> = []
      class Watched extends NodeWebSocket {
        constructor(url: string) {
          super(url)
          sockets.push(this)
        }
      }
      const client = yield* FrontendToolsClient.make({ url, key: "demo-key", socket: Watched }).pipe(
        Scope.provide(scope)
      )
      const promised = createFrontendToolsClient({ url, key: "shop-key", socket: Watched })
      yield* Effect.promise(() => promised.connect())
      const signals = new Set<AbortSignal>()
      yield* Effect.promise(() =>
        promised.registerTools([
          tool("t", {
            execute: async (args, { signal }) => {
              signals.add(signal)
              return args
            }
          })
        ])
      )
      const registration = yield* client
        .register(readTool("t", () => Effect.as(Effect.yieldNow, 1)))
        .pipe(Scope.provide(scope))
      yield* registration.publicNames
      const call = (name: string) => MemoryHost.use((host) => host.call(name, {}))
      const calls = (count: number) =>
        Effect.forEach(
          Array.from({ length: count }, (_, i) => (i % 2 === 0 ? "demo__t" : "shop__t")),
          call,
          { concurrency: 64, discard: true }
        )
      const resources = () => process.getActiveResourcesInfo().length
      const listeners = () => sockets.map((socket) => socket.eventNames().map((name) => socket.listenerCount(name)))
      const finalizers = () => (scope.state._tag === "Open" ? scope.state.finalizers?.size : 0)
      yield* calls(100)
      const before = { listeners: listeners(), finalizers: finalizers(), resources: resources() }
      yield* calls(20_000)
      assert.deepStrictEqual(
        { listeners: listeners(), finalizers: finalizers() },
        { listeners: before.listeners, finalizers: before.finalizers }
      )
      // Timers of earlier tests may have ended meanwhile.
      assert.isAtMost(resources(), before.resources)
      assert.strictEqual(yield* client.inFlight, 0)
      assert.strictEqual(signals.size, 10_050)
      assert.isTrue(Array.from(signals).every(({ aborted }) => !aborted))
      promised.disconnect()
      yield* Scope.close(scope, Exit.void)
      yield* eventually(
        Effect.sync(() => sockets.every(({ readyState }) => readyState === Watched.CLOSED)),
        (closed) => closed
      )
    }).pipe(Effect.provide(socketBridge()))
  )
})
