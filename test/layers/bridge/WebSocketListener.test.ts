import { randomBytes } from "node:crypto"
import * as Http from "node:http"
import * as Net from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { BridgeServer, CallDispatcher, MemoryHost, WebSocketListener } from "../../../src/index.ts"
import { openSession, openSocket, socketBridge } from "../../support/socketBridge.ts"

/** A TCP connection, with what it received and when it was closed. */
const tcp = Effect.fnUntraced(function* (text = "") {
  const { port } = yield* WebSocketListener
  const socket = Net.connect(port, "127.0.0.1")
  let received = ""
  socket.on("data", (chunk) => {
    received += chunk
  })
  socket.on("error", () => {})
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()))
  yield* Effect.promise(() => new Promise<void>((resolve) => socket.on("connect", () => resolve())))
  yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
  socket.write(text)
  return { socket, received: () => received, closed: Effect.promise(() => closed) }
})

const upgrade = (headers: string) =>
  `GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n${headers}\r\n`

/** One masked text frame, as a client sends it. */
const frame = (text: string) => {
  const payload = Buffer.from(text)
  const mask = randomBytes(4)
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.concat([Buffer.from([0x80 | 126]), Buffer.from([payload.length >> 8, payload.length & 255])])
  return Buffer.concat([Buffer.from([0x81]), length, mask, payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0))])
}

const statusOf = (text: string) => /^HTTP\/1\.1 (\d+)/.exec(text)?.[1]

describe("WebSocketListener", () => {
  it.live("answers a plain HTTP request with 426", () =>
    Effect.gen(function* () {
      const { port } = yield* WebSocketListener
      const status = yield* Effect.promise(
        () =>
          new Promise((resolve) =>
            Http.get({ port, host: "127.0.0.1" }, (response) => {
              response.resume()
              resolve(response.statusCode)
            })
          )
      )
      assert.strictEqual(status, 426)
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("listens on the loopback interface only, and says so when the port is taken", () =>
    Effect.gen(function* () {
      const { port, url } = yield* WebSocketListener
      assert.strictEqual(url, `ws://127.0.0.1:${port}`)
      const second = yield* Effect.flip(Effect.scoped(Layer.build(Layer.fresh(socketBridge({ port })))))
      assert.strictEqual(second._tag, "ListenError")
      assert.strictEqual(second.message, `listen EADDRINUSE: address already in use 127.0.0.1:${port}`)
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("refuses a Host that is not this machine, as a rebound page sends it", () =>
    Effect.gen(function* () {
      const { port } = yield* WebSocketListener
      for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1:1", `0.0.0.0:${port}`]) {
        const line = yield* tcp(upgrade(`Host: ${host}\r\n`))
        yield* line.closed
        assert.strictEqual(statusOf(line.received()), "403", host)
      }
      for (const host of [`127.0.0.1:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
        const { failed, opened } = yield* openSocket({ headers: { Host: host } })
        yield* Effect.raceFirst(opened, Effect.flatMap(failed, Effect.die))
      }
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("lets a tunnel's Host through when it is told to", () =>
    Effect.gen(function* () {
      const { opened } = yield* openSocket({ headers: { Host: "tunnel.example" } })
      yield* opened
    }).pipe(Effect.provide(socketBridge({ checkHost: false })))
  )

  it.live("admits the listed origins, and programs that are no page", () =>
    Effect.gen(function* () {
      const refused = yield* openSocket({ origin: "https://evil.example" })
      assert.include((yield* refused.failed).message, "403")
      yield* openSession("demo", { origin: "https://shop.example" })
      yield* openSession("shop")
    }).pipe(Effect.provide(socketBridge({ allowedOrigins: ["https://shop.example"] })))
  )

  it.live("cuts connections that never upgrade or never say hello", () =>
    Effect.gen(function* () {
      const silent = yield* tcp()
      const half = yield* tcp("GET / HTTP/1.1\r\nHost:")
      const upgraded = yield* openSocket()
      yield* silent.closed
      yield* half.closed
      assert.strictEqual(yield* upgraded.closed, 1008)
    }).pipe(Effect.provide(socketBridge({ handshakeTimeoutMs: 150 })))
  )

  it.live("survives a flood of silent connections without locking a good client out", () =>
    Effect.gen(function* () {
      const flood = yield* Effect.forEach(Array.from({ length: 200 }), () => tcp(), { concurrency: 20 })
      yield* openSession("demo")
      let open = 0
      for (const { socket } of flood) if (!socket.destroyed) open++
      assert.isAtMost(open, 64)
    }).pipe(Effect.provide(socketBridge({ handshakeTimeoutMs: 60_000 })))
  )

  it.live("reads no more than the hello's share before the welcome, whatever length is announced", () =>
    Effect.gen(function* () {
      const long = yield* openSocket()
      yield* long.opened
      long.socket.send("x".repeat(100_000))
      assert.strictEqual(yield* long.closed, 1009)
      // One frame that announces the most a session may send: it is cut long before that.
      const endless = yield* openSocket()
      yield* endless.opened
      endless.socket.send("x".repeat(15 * 1024 * 1024))
      assert.include([1006, 1009], yield* endless.closed)
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("closes on a frame over the limit after the welcome", () =>
    Effect.gen(function* () {
      const { closed, say } = yield* openSession("demo")
      say({ type: "pong", pad: "x".repeat(40_000) })
      say({ type: "pong", pad: "x".repeat(60_000) })
      assert.strictEqual(yield* closed, 1009)
    }).pipe(Effect.provide(socketBridge({ maxFrameBytes: 50_000 })))
  )

  it.live("offers no compression", () =>
    Effect.gen(function* () {
      const { socket } = yield* openSession("demo", { perMessageDeflate: true })
      assert.strictEqual(socket.extensions, "")
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("obeys nothing behind a fatal frame of the same write, from a peer that ignores the close", () =>
    Effect.gen(function* () {
      const { port } = yield* WebSocketListener
      const stubborn = yield* tcp(upgrade(`Host: 127.0.0.1:${port}\r\n`))
      yield* Effect.callback<void>((resume) => {
        stubborn.socket.once("data", () => resume(Effect.void))
      })
      const hello = (key: string) => frame(JSON.stringify({ type: "hello", protocol: 5, key }))
      stubborn.socket.write(Buffer.concat([frame("nonsense"), hello("demo-key")]))
      // The owner is welcomed at once: the dying socket holds nothing.
      yield* openSession("demo")
      // And it is cut although it never answers the close.
      yield* stubborn.closed
    }).pipe(Effect.provide(socketBridge()))
  )

  it.live("frees port, sessions, calls and connections when its scope closes, and returns when that is done", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(socketBridge(), scope)
      const within = Effect.provideContext(context)
      const demo = yield* within(openSession("demo"))
      demo.say({
        type: "register",
        tools: [{ name: "read", description: "", parametersSchema: { type: "object" }, readOnly: true }]
      })
      yield* demo.next
      const neverUpgraded = yield* within(tcp())
      const call = yield* Context.get(context, MemoryHost)
        .call("demo__read", {})
        .pipe(Effect.flip, Effect.forkChild({ startImmediately: true }))
      const { port } = Context.get(context, WebSocketListener)

      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* demo.closed, 1001)
      yield* neverUpgraded.closed
      assert.strictEqual((yield* Fiber.join(call)).reason._tag, "ConnectionClosed")
      assert.strictEqual(yield* Context.get(context, CallDispatcher).inFlight, 0)
      assert.deepStrictEqual(yield* Context.get(context, MemoryHost).tools, [])
      assert.deepStrictEqual(yield* Context.get(context, BridgeServer).sessions, [])
      // The same port is free at once.
      yield* Effect.scoped(Layer.build(Layer.fresh(socketBridge({ port }))))
    })
  )

  it.live("leaves no handle of the process behind", () =>
    Effect.gen(function* () {
      const handles = () => process.getActiveResourcesInfo().filter((name) => /TCP|Timeout|Immediate/.test(name)).length
      const before = handles()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* openSession("demo")
          yield* openSession("shop")
          const stranger = yield* openSocket()
          yield* stranger.opened
          stranger.say({ type: "hello", protocol: 5, key: "wrong" })
        }).pipe(Effect.provide(socketBridge()))
      )
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.isAtMost(handles(), before)
    })
  )
})
