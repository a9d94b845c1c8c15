/** A wire between chat and backend that can be cut for answers: what is posted gets no further. */
import { createServer, request } from "node:http"
import { Effect } from "effect"

export interface Wire {
  readonly url: string
  /** Cuts the wire for answers. Completes when answers to these many calls have come and been held back. */
  readonly holdAnswers: (calls: number) => Effect.Effect<void>
  readonly mend: Effect.Effect<void>
}

/** Forwards everything to the port until the scope closes. */
export const makeWire = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<Wire & { readonly close: () => void }>((resume) => {
      const held = new Set<string>()
      let cut = false
      let onHeld = () => {}

      const server = createServer(async (incoming, outgoing) => {
        const chunks: Array<Buffer> = []
        for await (const chunk of incoming) chunks.push(chunk)
        const body = Buffer.concat(chunks)
        if (cut && incoming.url?.endsWith("/tool_results") === true) {
          const { results }: { readonly results: ReadonlyArray<{ readonly call_id: string }> } = JSON.parse(
            String(body)
          )
          for (const { call_id } of results) held.add(call_id)
          return onHeld()
        }
        const { headers, method, url } = incoming
        const forwarded = request({ host: "127.0.0.1", port, path: url, method, headers }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.on("error", () => outgoing.destroy())
          answer.pipe(outgoing)
        })
        forwarded.on("error", () => outgoing.destroy())
        forwarded.end(body)
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const own = typeof address === "object" && address !== null ? address.port : 0
        resume(
          Effect.succeed({
            url: `http://127.0.0.1:${own}`,
            holdAnswers: (calls) =>
              Effect.callback((done) => {
                cut = true
                onHeld = () => {
                  if (held.size >= calls) done(Effect.void)
                }
              }),
            mend: Effect.sync(() => {
              cut = false
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
