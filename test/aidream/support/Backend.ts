import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { type Cause, Effect, Queue, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { apiErrorBody } from "../../../src/domain/aidream/ApiError.ts"
import { encodeLine, type Line } from "./events.ts"
import { until } from "./until.ts"

export type Endpoint = "start" | "continue" | "tool_results" | "resume" | "pending_calls" | "cancel" | "fence"

/** A request as the backend received it. */
export interface Received {
  readonly endpoint: Endpoint
  readonly url: string
  readonly conversationId: string
  readonly headers: Readonly<Record<string, string | undefined>>
  // biome-ignore lint/suspicious/noExplicitAny: a recorded JSON body, looked at by assertions only
  readonly body: any
}

export type Reply = Effect.Effect<HttpServerResponse.HttpServerResponse>
export type Handler = (received: Received) => Reply

const ndjson = (body: Stream.Stream<Uint8Array>, headers: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.stream(body, { contentType: "application/x-ndjson", headers })

/** Replies with a JSON body. */
export const json = (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Reply =>
  Effect.succeed(HttpServerResponse.jsonUnsafe(body, { status, headers }))

/** Replies with plain text or HTML. */
export const text = (body: string, status = 200): Reply => Effect.succeed(HttpServerResponse.text(body, { status }))

/** Refuses, in the wrapper our own backend uses. */
export const refuse = (status: number, code: string, details: Readonly<Record<string, unknown>> = {}): Reply =>
  json(apiErrorBody(code, "refused", { details }), status)

/** Replies with a whole run. */
export const lines = (all: ReadonlyArray<Line>, headers?: Readonly<Record<string, string>>): Reply =>
  Effect.succeed(ndjson(Stream.fromIterable(all.map(encodeLine)), headers))

/** A run whose lines the test writes one by one. */
export interface LiveRun {
  readonly reply: Reply
  readonly write: (...more: ReadonlyArray<Line>) => void
  readonly close: () => void
}

export const liveRun = (headers?: Readonly<Record<string, string>>): LiveRun => {
  const queue = Effect.runSync(Queue.unbounded<Uint8Array, Cause.Done>())
  // Headers leave with the first byte of the body.
  Queue.offerUnsafe(queue, encodeLine({ event: "phase", data: { phase: "connected" } }))
  return {
    reply: Effect.sync(() => ndjson(Stream.fromQueue(queue), headers)),
    write: (...more) => {
      Queue.offerAllUnsafe(queue, more.map(encodeLine))
    },
    close: () => {
      Queue.endUnsafe(queue)
    }
  }
}

/** The usual acceptance of a post of results. */
export const accepted =
  (continuation: boolean, request: string | null = "req-1"): Handler =>
  (received) =>
    json({
      resolved: received.body.results.map((result: { readonly call_id: string }) => result.call_id),
      already_resolved: [],
      not_found: [],
      continuation_needed: continuation,
      user_request_id: request,
      conversation_id: received.conversationId
    })

/** Handlers used one after the other; the last one stays. */
export const sequence = (...handlers: ReadonlyArray<Handler | Reply>): Handler => {
  let next = 0
  return (received) => {
    const handler = handlers[Math.min(next++, handlers.length - 1)]
    return typeof handler === "function" ? handler(received) : (handler ?? text("no handler", 500))
  }
}

export interface Backend {
  readonly url: string
  readonly received: ReadonlyArray<Received>
  readonly to: (endpoint: Endpoint) => ReadonlyArray<Received>
  readonly on: (endpoint: Endpoint, ...handlers: ReadonlyArray<Handler | Reply>) => void
  /** Waits until `count` requests came in. */
  readonly awaitRequests: (endpoint: Endpoint, count: number) => Effect.Effect<void>
  /** A few round trips: whatever was on its way has arrived after them. */
  readonly fence: Effect.Effect<void>
}

const endpointOf = (method: string, path: string): Endpoint | undefined => {
  if (path === "/fence") return "fence"
  if (/^\/ai\/agent\/[^/]+$/.test(path)) return "start"
  if (/^\/ai\/cancel\/[^/]+$/.test(path)) return "cancel"
  const conversation = /^\/ai\/conversations\/[^/]+(?:\/(tool_results|resume|pending_calls))?$/.exec(path)
  if (conversation === null) return undefined
  if (conversation[1] === undefined) return "continue"
  if (conversation[1] === "pending_calls") return method === "GET" ? "pending_calls" : undefined
  return conversation[1] === "resume" ? "resume" : "tool_results"
}

/** A scripted backend on a loopback port of its own, until the scope closes. */
export const startBackend = Effect.gen(function* () {
  const node = createServer()
  const server = yield* NodeHttpServer.make(() => node, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 0 })
  yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))

  const received: Array<Received> = []
  const handlers = new Map<Endpoint, Handler>([
    ["fence", () => json({})],
    ["cancel", () => json({ status: "cancelled" })],
    ["pending_calls", () => json([])],
    ["tool_results", accepted(false)]
  ])

  yield* server.serve(
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const [path = ""] = request.url.split("?")
      const endpoint = endpointOf(request.method, path)
      if (endpoint === undefined) return HttpServerResponse.text("no such endpoint", { status: 404 })
      const body = request.method === "POST" ? yield* Effect.orDie(request.json) : undefined
      const entry: Received = {
        endpoint,
        url: request.url,
        conversationId: decodeURIComponent(path.split("/")[3] ?? ""),
        headers: request.headers,
        body
      }
      if (endpoint !== "fence") received.push(entry)
      return yield* handlers.get(endpoint)?.(entry) ?? text(`nothing scripted for ${endpoint}`, 500)
    })
  )

  const { address } = server
  const port = address._tag === "UnixPathAddress" ? 0 : address.port
  const url = `http://127.0.0.1:${port}`
  const to = (endpoint: Endpoint) => received.filter((request) => request.endpoint === endpoint)

  const backend: Backend = {
    url,
    received,
    to,
    on: (endpoint, ...scripted) => {
      handlers.set(endpoint, sequence(...scripted))
    },
    awaitRequests: (endpoint, count) => until(`${count} requests to ${endpoint}`, () => to(endpoint).length >= count),
    fence: Effect.promise(async () => {
      for (let trip = 0; trip < 3; trip++) await (await fetch(`${url}/fence`)).text()
    })
  }
  return backend
}).pipe(TestClock.withLive)
