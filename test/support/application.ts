import { Effect } from "effect"
import WebSocket from "ws"

export interface ApplicationOptions {
  readonly url: string
  readonly namespace: string
  readonly tools: Readonly<
    Record<string, { readonly readOnly?: boolean; readonly run: (args: Record<string, unknown>) => unknown }>
  >
}

/**
 * An application on a real socket, whose key is `<namespace>-key`. It connects again when its
 * bridge comes back on the same port, until the scope closes.
 */
export const startApplication = ({ namespace, tools, url }: ApplicationOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      let socket: WebSocket
      let closed = false
      let again: NodeJS.Timeout | undefined
      const connect = () => {
        socket = new WebSocket(url)
        const say = (frame: unknown) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame))
        socket.on("open", () => say({ type: "hello", protocol: 5, key: `${namespace}-key` }))
        socket.on("error", () => {})
        socket.on("close", () => {
          if (!closed) again = setTimeout(connect, 50)
        })
        socket.on("message", async (data) => {
          const frame = JSON.parse(String(data))
          if (frame.type === "ping") say({ type: "pong" })
          if (frame.type === "welcome") {
            const offered = Object.entries(tools).map(([name, { readOnly = false }]) => ({
              name,
              description: `does ${name}`,
              parametersSchema: { type: "object" },
              readOnly
            }))
            say({ type: "register", tools: offered })
          }
          if (frame.type !== "call") return
          try {
            const result = (await tools[frame.name]?.run(frame.args)) ?? null
            say({ type: "callResult", callId: frame.callId, ok: true, result })
          } catch (error) {
            say({
              type: "callResult",
              callId: frame.callId,
              ok: false,
              error: { code: "failed", message: String(error) }
            })
          }
        })
      }
      connect()
      return () => {
        closed = true
        clearTimeout(again)
        socket.terminate()
      }
    }),
    (close) => Effect.sync(close)
  )
