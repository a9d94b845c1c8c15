import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, References } from "effect"
import WebSocket from "ws"
import { Bridge, BridgeConfig, type BridgeOptionsInput, MemoryHost, WebSocketListener } from "../../src/index.ts"
import { temporaryFolder } from "./temporaryFolder.ts"

/** A whole bridge on a free loopback port, on the memory host. It admits `demo` with the key `demo-key`. */
export const socketBridge = (options: BridgeOptionsInput = {}) =>
  Layer.unwrap(
    Effect.map(temporaryFolder, (stateDir) =>
      Bridge.layer.pipe(
        Layer.provideMerge(MemoryHost.layer()),
        Layer.provide(
          BridgeConfig.layer({
            port: 0,
            stateDir,
            staticClients: ["demo", "shop"].map((namespace) => ({ namespace, key: `${namespace}-key` })),
            ...options
          })
        ),
        Layer.provide(NodeServices.layer),
        Layer.provide(Layer.succeed(References.MinimumLogLevel, "None"))
      )
    )
  )

/** A bare WebSocket client that speaks in frames. */
export const openSocket = Effect.fnUntraced(function* (options?: WebSocket.ClientOptions) {
  const { url } = yield* WebSocketListener
  const socket = new WebSocket(url, options)
  const frames: Array<Record<string, unknown>> = []
  const waiting: Array<(frame: Record<string, unknown>) => void> = []
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data))
    const waiter = waiting.shift()
    if (waiter === undefined) frames.push(frame)
    else waiter(frame)
  })
  const closed = new Promise<number>((resolve) => socket.on("close", resolve))
  const failed = new Promise<Error>((resolve) => socket.on("error", resolve))
  yield* Effect.addFinalizer(() => Effect.sync(() => socket.terminate()))
  return {
    socket,
    opened: Effect.promise(() => new Promise<void>((resolve) => socket.on("open", () => resolve()))),
    closed: Effect.promise(() => closed),
    failed: Effect.promise(() => failed),
    say: (frame: unknown) => socket.send(JSON.stringify(frame)),
    next: Effect.callback<Record<string, unknown>>((resume) => {
      const frame = frames.shift()
      if (frame === undefined) waiting.push((arrived) => resume(Effect.succeed(arrived)))
      else resume(Effect.succeed(frame))
    })
  }
})

/** A client that has been welcomed as `namespace`. */
export const openSession = Effect.fnUntraced(function* (namespace: string, options?: WebSocket.ClientOptions) {
  const client = yield* openSocket(options)
  yield* client.opened
  client.say({ type: "hello", protocol: 5, key: `${namespace}-key` })
  yield* client.next
  return client
})
