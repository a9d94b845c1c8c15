/** The published client of the peer against our bridge, over a real socket. */
import { assert, describe, it } from "@effect/vitest"
import { createFrontendToolsClient, type FrontendTool } from "dsh-frontend-tools-client"
import { Effect, Exit, Layer, Schedule, Scope } from "effect"
import { BridgeServer, MemoryHost, Namespace, WebSocketListener } from "../../../src/index.ts"
import { socketBridge } from "../../support/socketBridge.ts"

const cart: FrontendTool = {
  name: "cart",
  description: "Read the cart.",
  parametersSchema: { type: "object", properties: { user: { type: "string" } } },
  readOnly: true,
  execute: async (args) => ({ cartOf: args })
}

const connect = Effect.fnUntraced(function* (namespace: string) {
  const { url } = yield* WebSocketListener
  const client = createFrontendToolsClient({ url, key: `${namespace}-key` })
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect()),
    () => Effect.sync(() => client.disconnect())
  )
  return client
})

const call = (name: string, args: unknown = {}) => MemoryHost.use((host) => host.call(name, args))

const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.retry(Schedule.spaced("20 millis")), Effect.timeout("10 seconds"), Effect.orDie)

const untilListed = (name: string) =>
  eventually(
    MemoryHost.use((host) => host.tools).pipe(
      Effect.filterOrFail((tools) => tools.some(({ publicName }) => publicName === name))
    )
  )

describe("the peer's client", () => {
  it.live("connects, registers, serves calls, unregisters and leaves", () =>
    Effect.gen(function* () {
      const client = yield* connect("demo")
      assert.strictEqual(client.state, "connected")
      assert.strictEqual(client.namespace, "demo")
      assert.deepStrictEqual(yield* Effect.promise(() => client.registerTools([cart])), ["demo__cart"])
      assert.deepStrictEqual(yield* call("demo__cart", { user: "ann" }), { cartOf: { user: "ann" } })
      assert.deepStrictEqual(yield* Effect.promise(() => client.unregisterTools(["cart", "nope"])), ["cart"])
      assert.deepStrictEqual(
        yield* MemoryHost.use((host) => host.tools).pipe(
          Effect.map((tools) => tools.filter(({ namespace }) => namespace === "demo"))
        ),
        []
      )
      client.disconnect()
      yield* eventually(
        BridgeServer.use((server) => server.sessions).pipe(Effect.filterOrFail((sessions) => sessions.length === 0))
      )
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("passes its tools' failures on", () =>
    Effect.gen(function* () {
      const client = yield* connect("demo")
      const failing: FrontendTool = {
        ...cart,
        name: "fail",
        execute: async () => {
          throw new Error("out of milk")
        }
      }
      yield* Effect.promise(() => client.registerTools([failing]))
      const error = yield* Effect.flip(call("demo__fail"))
      assert.strictEqual(error.message, "frontend-tools call failed (internal): out of milk")
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("reads the code and the message of a refusal", () =>
    Effect.gen(function* () {
      const { url } = yield* WebSocketListener
      const refusal = yield* Effect.flip(
        Effect.tryPromise({
          try: () => createFrontendToolsClient({ url, key: "wrong" }).connect(),
          catch: (error) => (error instanceof Error && "code" in error ? `${error.code}: ${error.message}` : "")
        })
      )
      assert.strictEqual(refusal, "auth_failed: key rejected")
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("comes back with its tools after the bridge dropped it, and after a restart on the same port", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const first = yield* Layer.buildWithScope(Layer.fresh(socketBridge()), scope)
      const { client, port } = yield* Effect.gen(function* () {
        const client = yield* connect("demo")
        yield* Effect.promise(() => client.registerTools([cart]))
        yield* BridgeServer.use((server) => server.disconnect(Namespace.make("demo"), "for a try"))
        yield* untilListed("demo__cart")
        return { client, port: (yield* WebSocketListener).port }
      }).pipe(Effect.provideContext(first))
      yield* Scope.close(scope, Exit.void)
      yield* Effect.gen(function* () {
        yield* untilListed("demo__cart")
        assert.deepStrictEqual(yield* call("demo__cart", 1), { cartOf: 1 })
        assert.strictEqual(client.state, "connected")
      }).pipe(Effect.provide(socketBridge({ port })))
    })
  )
})
