import * as Http from "node:http"
import type { Socket } from "node:net"
import { Context, Effect, Fiber, FiberSet, Layer, Schema } from "effect"
import { WebSocketServer } from "ws"
import { Admission, type Slot } from "./Admission.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import * as BridgeMetrics from "./BridgeMetrics.ts"
import { BridgeServer } from "./BridgeServer.ts"
import { makeWebSocketConnection } from "./WebSocketConnection.ts"

const LOOPBACK = "127.0.0.1"

/** How long a peer may take to answer a close frame. */
const CLOSE_GRACE = "1 second"

/** The port cannot be bound. The message is the system's. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", { message: Schema.String }) {}

/** One TCP connection: with or without an upgrade, with or without a session. */
interface Line {
  readonly slot: Slot
  session?: Fiber.Fiber<void>
}

const refusal = (status: number, text: string) =>
  `HTTP/1.1 ${status} ${Http.STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\n\r\n${text}`

/**
 * The bridge's door to the machine: a WebSocket server on 127.0.0.1 (bridge
 * protocol, part a).
 *
 * Built once the port is bound. When its scope closes, nothing more is accepted,
 * every session ends with close code 1001, and every TCP connection is gone before
 * the port is free again.
 */
export class WebSocketListener extends Context.Service<
  WebSocketListener,
  {
    readonly port: number
    /** What an application connects to. */
    readonly url: string
  }
>()("effect-frontend-tools/layers/bridge/WebSocketListener") {
  static readonly layer: Layer.Layer<WebSocketListener, ListenError, Admission | BridgeConfig | BridgeServer> =
    Layer.effect(
      WebSocketListener,
      Effect.gen(function* () {
        const config = yield* BridgeConfig
        const admission = yield* Admission
        const server = yield* BridgeServer
        const context = yield* Effect.context()
        const runSync = Effect.runSyncWith(context)
        const lines = new Map<Socket, Line>()
        let port = config.port

        const http = Http.createServer((_request, response) => {
          response.writeHead(426, { Connection: "close", Upgrade: "websocket", "Content-Type": "text/plain" })
          response.end("Upgrade Required")
        })
        const upgrades = new WebSocketServer({
          noServer: true,
          perMessageDeflate: false,
          maxPayload: config.maxFrameBytes,
          clientTracking: false
        })

        http.on("connection", (socket) => {
          const slot = admission.enter(() => socket.destroy())
          lines.set(socket, { slot })
          socket.on("close", () => {
            slot.leave()
            lines.delete(socket)
          })
        })

        /** Why an upgrade is refused: its status and text. */
        const objection = ({ headers }: Http.IncomingMessage): readonly [number, string] | undefined => {
          if (config.checkHost && !isThisMachine(headers.host, port))
            return [403, "the Host header names no loopback address"]
          const { origin } = headers
          if (config.allowedOrigins !== undefined && origin !== undefined && !config.allowedOrigins.includes(origin)) {
            return [403, "this Origin is not allowed"]
          }
          return undefined
        }

        // Peers that were sent a close frame, each with the time it has left to answer.
        const runClosing = yield* FiberSet.makeRuntime<never, void>()

        http.on("upgrade", (request, stream, head) => {
          const socket = request.socket
          const line = lines.get(socket)
          const objected = objection(request)
          if (line === undefined) {
            stream.destroy()
            return
          }
          if (objected !== undefined) {
            BridgeMetrics.handshakeRefused(objected[1], context)
            const { host, origin } = request.headers
            runSync(Effect.logWarning(`connection refused: ${objected[1]} (${show({ host, origin })})`))
            stream.on("error", () => {})
            stream.end(refusal(...objected))
            return
          }
          upgrades.handleUpgrade(request, stream, head, (webSocket) => {
            const connection = makeWebSocketConnection(webSocket, socket, {
              maxHelloBytes: config.maxHelloBytes,
              onClosing: () => {
                const waiting = runClosing(
                  Effect.andThen(
                    Effect.sleep(CLOSE_GRACE),
                    Effect.sync(() => webSocket.terminate())
                  )
                )
                webSocket.on("close", () => waiting.interruptUnsafe())
              }
            })
            line.session = runSync(server.accept(connection, line.slot))
          })
        })

        yield* Effect.acquireRelease(
          Effect.callback<void, ListenError>((resume) => {
            http.once("error", ({ message }) => resume(Effect.fail(new ListenError({ message }))))
            http.listen(config.port, LOOPBACK, () => resume(Effect.void))
          }),
          () =>
            Effect.gen(function* () {
              const closed = yield* Effect.forkChild(
                Effect.callback<void>((resume) => {
                  http.close(() => resume(Effect.void))
                }),
                { startImmediately: true }
              )
              yield* Fiber.interruptAll(Array.from(lines.values()).flatMap(({ session }) => session ?? []))
              // What has no session has nobody to wait for.
              for (const [socket, { session }] of lines) if (session === undefined) socket.destroy()
              yield* Effect.timeoutOption(Fiber.join(closed), CLOSE_GRACE)
              for (const socket of lines.keys()) socket.destroy()
              yield* Fiber.join(closed)
            })
        )
        const address = http.address()
        if (address !== null && typeof address !== "string") port = address.port

        return WebSocketListener.of({ port, url: `ws://${LOOPBACK}:${port}` })
      })
    )
}

/** Headers inside a log line: no more of them than it holds. */
const show = (headers: object) => JSON.stringify(headers).slice(0, 200)

/** Whether a `Host` header names the loopback interface and the port. */
const isThisMachine = (host: string | undefined, port: number): boolean =>
  host !== undefined && [LOOPBACK, "localhost", "[::1]"].some((name) => host.toLowerCase() === `${name}:${port}`)
