/** A bare MCP client: JSON-RPC lines over any pair of pipes, with nothing done for the caller. */
import { type Cause, Deferred, Effect, Queue, Schema, Sink, Stdio, Stream } from "effect"

const Message = Schema.Struct({
  id: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.Finite, Schema.String]))),
  method: Schema.optionalKey(Schema.String),
  params: Schema.optionalKey(Schema.Any),
  result: Schema.optionalKey(Schema.Any),
  error: Schema.optionalKey(
    Schema.Struct({ code: Schema.Finite, message: Schema.String, data: Schema.optionalKey(Schema.Any) })
  )
})
export type Message = typeof Message.Type
const decodeMessage = Schema.decodeUnknownSync(Schema.fromJsonString(Message))

export interface McpWire {
  /** Sends a request and gives its response. Interrupting it cancels the request. */
  readonly request: (method: string, params?: object) => Effect.Effect<Message>
  readonly notify: (method: string, params?: object) => Effect.Effect<void>
  /** Answers a request of the server. */
  readonly respond: (id: Message["id"], result: object) => Effect.Effect<void>
  /** Refuses a request of the server. */
  readonly fail: (id: Message["id"], message: string) => Effect.Effect<void>
  /** Writes a line as it is. */
  readonly line: (text: string) => Effect.Effect<void>
  /** Requests and notifications of the server, in order. */
  readonly incoming: Queue.Queue<Message>
  /** Responses that nobody waited for. */
  readonly strays: ReadonlyArray<Message>
}

export const makeWire = Effect.fnUntraced(function* (pipes: {
  readonly write: (text: string) => Effect.Effect<void>
  readonly output: Stream.Stream<Uint8Array, unknown>
}) {
  const pending = new Map<Message["id"], Deferred.Deferred<Message>>()
  const incoming = yield* Queue.unbounded<Message>()
  const strays: Array<Message> = []
  let nextId = 1

  const send = (message: object) => pipes.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)

  yield* pipes.output.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.runForEach((line) =>
      Effect.sync(() => {
        const message = decodeMessage(line)
        if (message.method !== undefined) return Queue.offerUnsafe(incoming, message)
        const waiting = pending.get(message.id)
        if (waiting === undefined) return strays.push(message)
        return Deferred.doneUnsafe(waiting, Effect.succeed(message))
      })
    ),
    Effect.ignore,
    Effect.forkScoped({ startImmediately: true })
  )

  const notify: McpWire["notify"] = (method, params) => send({ method, ...(params && { params }) })

  const wire: McpWire = {
    request: (method, params) =>
      Effect.suspend(() => {
        const id = nextId++
        const response = Deferred.makeUnsafe<Message>()
        pending.set(id, response)
        return send({ id, method, ...(params && { params }) }).pipe(
          Effect.andThen(Deferred.await(response)),
          Effect.onInterrupt(() => notify("notifications/cancelled", { requestId: id })),
          Effect.ensuring(Effect.sync(() => pending.delete(id)))
        )
      }),
    notify,
    respond: (id, result) => send({ id, result }),
    fail: (id, message) => send({ id, error: { code: -32603, message } }),
    line: (text) => pipes.write(`${text}\n`),
    incoming,
    strays
  }
  return wire
})

/** A wire and, at its other end, the `Stdio` of a server. */
export const inMemory = Effect.gen(function* () {
  const toServer = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  const toClient = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  const encoder = new TextEncoder()
  const offer = (queue: typeof toServer, text: string | Uint8Array) =>
    Effect.sync(() => void Queue.offerUnsafe(queue, typeof text === "string" ? encoder.encode(text) : text))
  const wire = yield* makeWire({ write: (text) => offer(toServer, text), output: Stream.fromQueue(toClient) })
  const toOutput = (chunk: string | Uint8Array) => offer(toClient, chunk)
  const stdio = Stdio.make({
    args: Effect.succeed([]),
    stdin: Stream.fromQueue(toServer),
    stdout: () => Sink.forEach(toOutput),
    stderr: () => Sink.drain
  })
  return { wire, stdio, end: Effect.asVoid(Queue.end(toServer)) }
})

/** Opens a session of a revision that has them. */
export const initialize = Effect.fnUntraced(function* (
  wire: McpWire,
  options: { readonly protocolVersion?: string; readonly capabilities?: object } = {}
) {
  const response = yield* wire.request("initialize", {
    protocolVersion: options.protocolVersion ?? "2025-11-25",
    capabilities: options.capabilities ?? {},
    clientInfo: { name: "wire", version: "1.0.0" }
  })
  yield* wire.notify("notifications/initialized")
  return response
})

/** What each request of revision 2026-07-28 carries. */
export const modernMeta = (capabilities: object = {}) => ({
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "wire", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": capabilities
  }
})
