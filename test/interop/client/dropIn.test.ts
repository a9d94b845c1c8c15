/** Our Promise API beside the published client: an application changes an import, and nothing else. */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "dsh-frontend-tools-client"
import { Effect, Schedule } from "effect"
import { BridgeServer, MemoryHost, Namespace, WebSocketListener } from "../../../src/index.ts"
import * as Ours from "../../../src/promise.ts"
import { freePort } from "../../support/freePort.ts"
import { socketBridge } from "../../support/socketBridge.ts"

type Sdk = typeof Peer | typeof Ours

const spec = (name: string) => ({
  name,
  description: `Does ${name}.`,
  parametersSchema: { type: "object" },
  readOnly: true
})

const told = (error: unknown) =>
  error instanceof Error && "code" in error ? `${error.name} ${error.code}: ${error.message}` : String(error)

/** What a promise comes to, in words. */
const attempt = (promise: Promise<unknown>) =>
  Effect.promise(() => promise.then((value) => JSON.stringify(value) ?? "done", told))

const thrownBy = (run: () => unknown): unknown => {
  try {
    return run()
  } catch (error) {
    return told(error)
  }
}

const bothRead = <A>(read: (sdk: Sdk) => A) => {
  assert.deepStrictEqual(read(Ours), read(Peer))
  return read(Ours)
}

/** Runs the same program with either client, each on a bridge of its own, and compares what it wrote down. */
const compare = <R>(
  program: (
    sdk: Sdk,
    log: Array<unknown>
  ) => Effect.Effect<void, unknown, R | MemoryHost | BridgeServer | WebSocketListener>
) =>
  Effect.gen(function* () {
    const run = (sdk: Sdk) =>
      Effect.gen(function* () {
        const log: Array<unknown> = []
        yield* program(sdk, log)
        return log
      }).pipe(Effect.provide(socketBridge(), { local: true }))
    const [ours, peer] = yield* Effect.all([run(Ours), run(Peer)], { concurrency: 2 })
    assert.deepStrictEqual(ours, peer)
    assert.isAbove(ours.length, 0)
  })

const untilState = (client: { readonly state: string }, state: string) =>
  Effect.sync(() => client.state).pipe(
    Effect.filterOrFail((now) => now === state),
    Effect.retry(Schedule.spaced("10 millis")),
    Effect.timeout("10 seconds")
  )

describe("in place of the published client", () => {
  it("every value that it exports is there, of the same kind", () => {
    const ours: Readonly<Record<string, unknown>> = Ours
    for (const [name, value] of Object.entries(Peer)) {
      if (typeof value === "function" || value instanceof RegExp)
        assert.strictEqual(typeof ours[name], typeof value, name)
      else assert.strictEqual(ours[name], value, name)
      if (value instanceof RegExp) assert.strictEqual(String(ours[name]), String(value))
    }
  })

  it("a client has the same methods and properties", () => {
    const methods = (sdk: Sdk) => Object.keys(sdk.createFrontendToolsClient({ url: "ws://127.0.0.1:1", key: "" }))
    assert.includeMembers(methods(Ours), methods(Peer))
  })

  it.live("a life: connect, register, serve, unregister, leave", () =>
    compare(
      Effect.fnUntraced(function* (sdk, log) {
        const { url } = yield* WebSocketListener
        const client = sdk.createFrontendToolsClient({ url, key: "demo-key" })
        const states: Array<string> = []
        const unsubscribe = client.onStateChange((state) => states.push(state))
        log.push(client.state, client.namespace)
        log.push(yield* attempt(client.connect()))
        log.push(client.state, client.namespace)
        const tools = [
          { ...spec("value"), execute: async (args: unknown) => ({ got: args }) },
          { ...spec("nothing"), execute: async () => {} },
          {
            ...spec("denied"),
            execute: async () => {
              throw new sdk.FrontendToolsError("denied", "not logged in")
            }
          },
          { ...spec("broken"), execute: () => Promise.reject(new Error("out of milk")) }
        ]
        log.push(yield* attempt(client.registerTools(tools)))
        for (const { name } of tools) {
          const called = yield* Effect.exit(MemoryHost.use((host) => host.call(`demo__${name}`, { n: 1 })))
          log.push(called._tag === "Success" ? called.value : String(called.cause))
        }
        log.push(yield* attempt(client.unregisterTools(["value", "unknown"])))
        log.push(yield* attempt(client.unregisterTools([])))
        log.push(yield* attempt(client.registerTools([tools[0] ?? assert.fail()])))
        unsubscribe()
        client.disconnect()
        client.disconnect()
        log.push(client.state, states)
        log.push(yield* attempt(client.connect()))
      })
    )
  )

  it.live("what goes wrong", () =>
    compare(
      Effect.fnUntraced(function* (sdk, log) {
        const { url } = yield* WebSocketListener
        const states: Array<string> = []
        const make = (url: string, key: string) => {
          const client = sdk.createFrontendToolsClient({ url, key })
          client.onStateChange((state) => states.push(state))
          return client
        }
        log.push(yield* attempt(make(url, "wrong").connect()))
        const nobody = `ws://127.0.0.1:${yield* freePort}`
        const failed = yield* attempt(make(nobody, "demo-key").connect())
        log.push(failed.replace(nobody, "URL").replace(/completed: .*/, "completed"))
        const client = make(url, "demo-key")
        yield* attempt(client.connect())
        log.push(yield* attempt(make(url, "demo-key").connect()))
        const execute = async () => 1
        // The published one throws where ours rejects: who awaits sees no difference.
        log.push(yield* attempt((async () => client.registerTools([{ ...spec("a b"), execute }]))()))
        log.push(yield* attempt(client.registerTools([{ ...spec("ok"), execute }])))
        client.disconnect()
        log.push(states)
      })
    )
  )

  it.live("a drop: the same states, and the tools are back", () =>
    compare(
      Effect.fnUntraced(function* (sdk, log) {
        const { url } = yield* WebSocketListener
        const client = sdk.createFrontendToolsClient({ url, key: "demo-key" })
        const states: Array<string> = []
        client.onStateChange((state) => states.push(state))
        yield* attempt(client.connect())
        yield* attempt(client.registerTools([{ ...spec("a"), execute: async () => 1 }]))
        yield* BridgeServer.use((server) => server.disconnect(Namespace.make("demo"), "for a try"))
        yield* untilState(client, "reconnecting")
        yield* untilState(client, "connected")
        log.push(
          yield* MemoryHost.use((host) => host.call("demo__a", {})).pipe(
            Effect.catchDefect(() => Effect.fail("not yet")),
            Effect.retry(Schedule.spaced("10 millis")),
            Effect.timeout("5 seconds")
          )
        )
        client.disconnect()
        log.push(states)
      })
    )
  )

  it.live("`reconnect: false` ends with the drop", () =>
    compare(
      Effect.fnUntraced(function* (sdk, log) {
        const { url } = yield* WebSocketListener
        const client = sdk.createFrontendToolsClient({ url, key: "demo-key", reconnect: false })
        const states: Array<string> = []
        client.onStateChange((state) => states.push(state))
        yield* attempt(client.connect())
        yield* BridgeServer.use((server) => server.disconnect(Namespace.make("demo"), "for a try"))
        yield* untilState(client, "disconnected")
        log.push(states)
      })
    )
  )

  it.live("a bare connection", () =>
    compare(
      Effect.fnUntraced(function* (sdk, log) {
        const { url } = yield* WebSocketListener
        const until = () => Promise.withResolvers<void>()
        const registered = until()
        const unregistered = until()
        const disconnected = until()
        const connection = new sdk.BridgeConnection(
          { url, key: "demo-key" },
          {
            onConnected: (namespace) => log.push(["connected", namespace]),
            onDisconnected: (fatal) => {
              log.push(["disconnected", fatal])
              disconnected.resolve()
            },
            onRegistered: (message) => {
              log.push(message)
              registered.resolve()
            },
            onUnregistered: (message) => {
              log.push(message)
              unregistered.resolve()
            },
            onCall: async (name, args) => ({ ok: true, result: [name, args] })
          }
        )
        log.push(connection.currentState, connection.namespace)
        log.push(thrownBy(() => connection.registerTools([spec("early")])))
        log.push(yield* attempt(connection.connect()))
        log.push(connection.currentState, connection.namespace)
        log.push(yield* attempt(connection.connect()))
        connection.registerTools([spec("a")])
        yield* Effect.promise(() => registered.promise)
        log.push(yield* MemoryHost.use((host) => host.call("demo__a", { n: 1 })))
        connection.unregisterTools(["a"])
        yield* Effect.promise(() => unregistered.promise)
        connection.disconnect()
        yield* Effect.promise(() => disconnected.promise)
        log.push(connection.currentState)
        log.push(yield* attempt(new sdk.BridgeConnection({ url, key: "wrong" }, {}).connect()))
      })
    )
  )

  it.live("a bare connection answers for a handler that fails", () =>
    Effect.gen(function* () {
      const { url } = yield* WebSocketListener
      const registered = Promise.withResolvers<void>()
      const connection = new Ours.BridgeConnection(
        { url, key: "demo-key" },
        { onRegistered: () => registered.resolve(), onCall: () => Promise.reject(new Error("out of milk")) }
      )
      yield* Effect.promise(() => connection.connect())
      connection.registerTools([spec("a")])
      yield* Effect.promise(() => registered.promise)
      const error = yield* Effect.flip(MemoryHost.use((host) => host.call("demo__a", {})))
      assert.match(error.message, /\(internal\): out of milk/)
      connection.disconnect()
    }).pipe(Effect.provide(socketBridge()))
  )

  it("a table of tools", async () => {
    const play = async (sdk: Sdk) => {
      const log: Array<unknown> = []
      const executor = new sdk.ToolExecutor()
      executor.register({ ...spec("b"), execute: async (args) => args })
      executor.register({ ...spec("a"), execute: () => Promise.reject(new sdk.FrontendToolsError("denied", "no")) })
      executor.register({ ...spec("c"), execute: () => Promise.reject(new Error("broken")) })
      log.push(thrownBy(() => executor.register({ ...spec("a b"), execute: async () => 1 })))
      for (const name of ["b", "a", "c", "nope"]) log.push(await executor.dispatch(name, { n: 1 }))
      executor.unregister("a")
      executor.unregister("nope")
      executor.register({ ...spec("b"), description: "other", execute: async () => 2 })
      log.push(executor.specs())
      return log
    }
    assert.deepStrictEqual(await play(Ours), await play(Peer))
  })

  it("keys and their text", () => {
    assert.match(Ours.generateClientKey(), Peer.CLIENT_KEY_PATTERN)
    assert.notStrictEqual(Ours.generateClientKey(), Ours.generateClientKey())
    for (const appName of [undefined, "Shop"]) {
      const input = { namespace: "shop", key: "k", ...(appName !== undefined && { appName }) }
      bothRead((sdk) => sdk.buildClientKeyClipboardText(input))
    }
  })

  it("frames are read and written alike", () => {
    const server = [
      { type: "welcome", protocol: 5, server: "frontend-tools-bridge", namespace: "demo" },
      { type: "registered", names: ["demo__a"] },
      { type: "unregistered", names: [] },
      { type: "call", callId: "1", name: "a", args: { n: 1 } },
      { type: "ping" },
      { type: "error", code: "auth_failed", message: "key rejected" }
    ] as const
    for (const frame of server) {
      bothRead((sdk) => sdk.parseServerMessage(JSON.stringify(frame)))
      assert.strictEqual(
        Ours.encodeServerMessage(Ours.parseServerMessage(JSON.stringify(frame))),
        JSON.stringify(frame)
      )
    }
    const client = [
      ["hello", { type: "hello", protocol: 5, key: "k" }],
      ["session", { type: "register", tools: [spec("a")] }],
      ["session", { type: "unregister", names: ["a"] }],
      ["session", { type: "callResult", callId: "1", ok: true, result: [1] }],
      ["session", { type: "callResult", callId: "1", ok: false, error: { code: "denied", message: "no" } }],
      ["session", { type: "pong" }]
    ] as const
    for (const [phase, frame] of client) {
      bothRead((sdk) => sdk.parseClientMessage(JSON.stringify(frame), phase))
      const read = Ours.parseClientMessage(JSON.stringify(frame), phase)
      assert.deepStrictEqual(JSON.parse(Ours.encodeClientMessage(read)), frame)
    }
    // A frame is judged as what it says it is, whenever it comes.
    assert.strictEqual(
      thrownBy(() => Ours.parseServerMessage('{"type":"call","callId":""}')),
      "FrontendToolsError invalid_message: call.callId must be a non-empty string"
    )
    assert.strictEqual(
      thrownBy(() => Ours.parseServerMessage('{"type":"welcome","protocol":6}')),
      "FrontendToolsError invalid_message: protocol version 6 is not supported (expected 5)"
    )
    const malformed = [
      "",
      "[]",
      "7",
      "{}",
      '{"type":"what"}',
      '{"type":"hello","protocol":4,"key":"k"}',
      '{"type":"pong"}'
    ]
    for (const text of malformed) {
      bothRead((sdk) => String(thrownBy(() => sdk.parseClientMessage(text, "hello"))).replace(/JSON: .*/, "JSON"))
    }
  })
})
