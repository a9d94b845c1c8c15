/** A bad network between client and backend. */
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

/** What happens to a request on its way. */
export type Mishap =
  /** Nothing. */
  | "none"
  /** It does not arrive. */
  | "lost"
  /** It arrives, and its answer does not. */
  | "unheard"
  /** A gateway answers in the backend's place. */
  | "gateway"
  /** A page of a captive portal answers with 200, though the request arrived. */
  | "portal"
  /** The answer breaks off somewhere. */
  | "cut"

export interface BadWire {
  readonly url: string
  /** A few round trips to the wire itself: whatever was on its way has arrived after them. */
  readonly fence: Effect.Effect<void>
}

/** Forwards to a port until the scope closes. `at` chooses where an answer breaks off, in [0, 1). */
export const makeBadWire = (options: {
  readonly port: () => number
  readonly mishap: (path: string) => Mishap
  readonly at: () => number
}) =>
  Effect.acquireRelease(
    Effect.callback<BadWire & { readonly close: () => void }>((resume) => {
      const server = createServer(async (incoming, outgoing) => {
        const path = incoming.url ?? ""
        if (path === "/fence") return void outgoing.end("{}")
        const pieces: Array<Buffer> = []
        for await (const piece of incoming) pieces.push(piece)
        const mishap = options.mishap(path)
        if (mishap === "lost") return void outgoing.destroy()
        if (mishap === "gateway") return void outgoing.writeHead(502).end("Bad gateway")
        const forwarded = request(
          { host: "127.0.0.1", port: options.port(), path, method: incoming.method, headers: incoming.headers },
          async (answer) => {
            const received: Array<Buffer> = []
            try {
              if (mishap === "none") {
                outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
                answer.pipe(outgoing)
                answer.on("error", () => outgoing.destroy())
                return
              }
              for await (const piece of answer) received.push(piece)
            } catch {
              return void outgoing.destroy()
            }
            const body = Buffer.concat(received)
            if (mishap === "unheard") return void outgoing.destroy()
            if (mishap === "portal") return void outgoing.writeHead(200).end("<html>Welcome</html>")
            outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
            outgoing.write(body.subarray(0, Math.floor(options.at() * body.length)), () => outgoing.destroy())
          }
        )
        forwarded.on("error", () => outgoing.destroy())
        forwarded.end(Buffer.concat(pieces))
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const url = `http://127.0.0.1:${port}`
        resume(
          Effect.succeed({
            url,
            fence: Effect.promise(async () => {
              for (let trip = 0; trip < 6; trip++) await (await fetch(`${url}/fence`)).text()
            }),
            close: () => {
              server.close()
              server.closeAllConnections()
            }
          })
        )
      })
    }),
    ({ close }) => Effect.sync(close)
  )
