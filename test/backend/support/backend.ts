import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Layer, Queue, Schema, Stream } from "effect"
import type { LanguageModel, Prompt } from "effect/ai"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { readApiError } from "../../../src/domain/aidream/ApiError.ts"
import { PendingCalls, pendingCallsOf } from "../../../src/domain/aidream/PendingCall.ts"
import { readEvent, type StreamEvent } from "../../../src/domain/aidream/StreamEvent.ts"
import { ToolResultsResponse } from "../../../src/domain/aidream/ToolResults.ts"
import { type Agent, Agents } from "../../../src/layers/backend/Agents.ts"
import { Authentication } from "../../../src/layers/backend/Authentication.ts"
import * as Backend from "../../../src/layers/backend/Backend.ts"
import { BackendConfig } from "../../../src/layers/backend/BackendConfig.ts"
import { Capabilities } from "../../../src/layers/backend/Capabilities.ts"
import { Ledger } from "../../../src/layers/backend/Ledger.ts"
import { Models } from "../../../src/layers/backend/Models.ts"
import * as ScriptedModel from "../../../src/layers/backend/ScriptedModel.ts"
import { ServerTools } from "../../../src/layers/backend/ServerTools.ts"
import * as SqlLedger from "../../../src/layers/backend/SqlLedger.ts"
import * as SqliteClient from "../../../src/layers/backend/sql/SqliteClient.ts"
import { type CatalogTool, ToolCatalog } from "../../../src/layers/backend/ToolCatalog.ts"

export interface Options {
  readonly model?: ((request: ScriptedModel.ScriptedRequest) => ScriptedModel.ScriptedAnswer) | undefined
  readonly modelLayer?: Layer.Layer<LanguageModel.LanguageModel> | undefined
  readonly catalog?: ReadonlyArray<CatalogTool> | undefined
  readonly agents?: Readonly<Record<string, Agent>> | undefined
  readonly serverTools?: Layer.Layer<ServerTools> | undefined
  readonly config?: Partial<BackendConfig["Service"]> | undefined
  readonly authentication?: Layer.Layer<Authentication> | undefined
  readonly wrapLedger?: ((ledger: Ledger["Service"]) => Ledger["Service"]) | undefined
}

/** A database several backends may share, as several processes share a file. */
export const database = Layer.build(SqliteClient.layer({ filename: ":memory:" }))

export const assistant: Agent = { instructions: "", tools: [] }

/** Runs a backend in this scope, without a socket: requests go straight to its router. */
export const make = Effect.fnUntraced(function* (
  options: Options,
  shared?: Context.Context<SqlClient.SqlClient> | undefined
) {
  const sqlContext = shared ?? (yield* database)
  const config = BackendConfig.layer(options.config)
  const services = yield* Layer.build(
    Layer.mergeAll(
      options.authentication ?? Authentication.layerTrusting,
      options.agents === undefined ? Agents.layerAny(assistant) : Agents.layer(options.agents),
      Capabilities.layer(),
      Models.layer.pipe(
        Layer.provide(options.modelLayer ?? ScriptedModel.layer(options.model ?? (() => ({ text: "done" }))))
      ),
      ToolCatalog.layer(options.catalog ?? []),
      options.serverTools ?? ServerTools.layerNone,
      SqlLedger.layer.pipe(Layer.provide(Layer.succeedContext(sqlContext)), Layer.provide(config)),
      config
    )
  )
  const ledger = Context.get(services, Ledger)
  const wrapped =
    options.wrapLedger === undefined ? services : Context.add(services, Ledger, options.wrapLedger(ledger))
  const handle = yield* HttpRouter.toHttpEffect(Backend.layer.pipe(Layer.provide(Layer.succeedContext(wrapped))))

  const send = Effect.fnUntraced(function* (
    method: "GET" | "POST",
    path: string,
    body?: unknown,
    who: Readonly<Record<string, string>> = { authorization: "Bearer ada" }
  ) {
    const request = HttpServerRequest.fromWeb(
      new Request(`http://127.0.0.1${path}`, {
        method,
        headers: { ...who, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
      })
    )
    const response = yield* handle.pipe(
      Effect.provideService(HttpServerRequest.HttpServerRequest, request),
      Effect.orDie
    )
    const events = yield* Queue.unbounded<StreamEvent | "closed">()
    let text = ""
    if (response.body._tag === "Stream") {
      yield* response.body.stream.pipe(
        Stream.decodeText,
        Stream.splitLines,
        Stream.runForEach((line) =>
          Effect.suspend(() => {
            const event = readEvent(JSON.parse(line))
            return event._tag === "unrecognised" ? Effect.die(line) : Queue.offer(events, event)
          })
        ),
        Effect.orDie,
        Effect.ensuring(Queue.offer(events, "closed")),
        Effect.forkScoped
      )
    } else if (response.body._tag === "Uint8Array") {
      text = new TextDecoder().decode(response.body.body)
    }
    return { status: response.status, headers: response.headers, text, events } satisfies Answer
  })

  return {
    send,
    ledger,
    sql: Context.get(sqlContext, SqlClient.SqlClient),
    sqlContext,
    post: (path: string, body: unknown, who?: Readonly<Record<string, string>>) => send("POST", path, body, who),
    get: (path: string, who?: Readonly<Record<string, string>>) => send("GET", path, undefined, who)
  }
}, Effect.provide(NodeServices.layer))

export type TestBackend = Effect.Success<ReturnType<typeof make>>

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly events: Queue.Queue<StreamEvent | "closed">
}

/** A refusal, as a client reads it. */
export const refusal = (answer: Answer) => readApiError(answer.status, answer.text)

const decodeResults = Schema.decodeUnknownSync(Schema.fromJsonString(ToolResultsResponse))
const decodePending = Schema.decodeUnknownSync(Schema.fromJsonString(PendingCalls))

/** What was done with results, as a client reads it. */
export const accepted = (answer: Answer) => {
  if (answer.status !== 200) throw new Error(answer.text)
  return decodeResults(answer.text)
}

/** A list of pending calls, as a client reads it. */
export const pending = (answer: Answer) => {
  if (answer.status !== 200) throw new Error(answer.text)
  return pendingCallsOf(decodePending(answer.text))
}

/** The next event of a stream. */
export const next = (answer: Answer) => Queue.take(answer.events)

/** Reads to the end of a stream. */
export const rest = Effect.fnUntraced(function* (answer: Answer) {
  const seen: Array<StreamEvent> = []
  while (true) {
    const event = yield* next(answer)
    if (event === "closed") return seen
    seen.push(event)
  }
})

/** Reads up to the first event that fits. */
export const until = Effect.fnUntraced(function* (answer: Answer, fits: (event: StreamEvent) => boolean) {
  const seen: Array<StreamEvent> = []
  while (true) {
    const event = yield* next(answer)
    if (event === "closed") return yield* Effect.die(new Error(`closed before it came: ${tags(seen).join(" ")}`))
    seen.push(event)
    if (fits(event)) return seen
  }
})

export const tags = (events: ReadonlyArray<StreamEvent>) => events.map(({ _tag }) => _tag)

/** What an event stream says that matters, one word each. */
export const outline = (events: ReadonlyArray<StreamEvent>) =>
  events.flatMap((event) => {
    switch (event._tag) {
      case "chunk":
      case "init":
      case "record_reserved":
      case "heartbeat":
        return []
      case "data":
        return []
      case "phase":
        return event.data.phase === "complete" ? ["phase complete"] : []
      case "completion":
        return event.data.operation === "user_request" ? [`completion ${event.data.status}`] : []
      case "tool_event":
        return [`${event.data.event} ${event.data.call_id}`]
      case "info":
        return [`info ${event.data.code}`]
      case "end":
        return [`end ${event.data.reason}`]
      case "error":
        return [`error ${event.data.error_type}`]
      default:
        return [event._tag]
    }
  })

export const textOf = (events: ReadonlyArray<StreamEvent>) =>
  events.flatMap((event) => (event._tag === "chunk" ? [event.data.text] : [])).join("")

export const delegatedIds = (events: ReadonlyArray<StreamEvent>) =>
  events.flatMap((event) =>
    event._tag === "tool_event" && event.data.event === "tool_delegated" ? [event.data.call_id as string] : []
  )

export const requestIdOf = (events: ReadonlyArray<StreamEvent>) => {
  for (const event of events) {
    if (event._tag === "record_reserved" && event.data.table === "user_request") return event.data.record_id
  }
  throw new Error("the stream names no turn")
}

export const browserState = (more: Readonly<Record<string, unknown>> = {}) => ({
  current_url: "https://example.test/",
  current_tab_id: 7,
  surface: "assistant",
  is_admin: false,
  permission_mode: "ask",
  desktop_bridge: "none",
  onbox_ai_available: false,
  optional_permissions_granted: [],
  ...more
})

/** The envelope of a browser extension. */
export const browserClient = (more?: Readonly<Record<string, unknown>>) => ({
  capabilities: ["browser-dom"],
  state: { "browser-dom": browserState(more) }
})

export const inline = (name: string, description = "A tool of the page.") => ({ kind: "inline", name, description })

export const uuid = () => crypto.randomUUID()

/** Starts a turn of the default agent. */
export const start = (backend: TestBackend, conversationId: string, more: Readonly<Record<string, unknown>> = {}) =>
  backend.post("/ai/agent/any", { conversation_id: conversationId, is_new: true, user_input: "hello", ...more })

/** Answers calls. */
export const answer = (
  backend: TestBackend,
  conversationId: string,
  results: ReadonlyArray<Readonly<Record<string, unknown>>>,
  more: Readonly<Record<string, unknown>> = {}
) =>
  backend.post(`/ai/conversations/${conversationId}/tool_results`, {
    results: results.map((result) => ({ tool_name: "any", ...result })),
    ...more
  })

export const resume = (backend: TestBackend, conversationId: string, body: Readonly<Record<string, unknown>> = {}) =>
  backend.post(`/ai/conversations/${conversationId}/resume`, body)

/** The results the model was last shown. */
export const lastResults = (prompt: Prompt.Prompt): string => {
  const last = prompt.content.at(-1)
  if (last?.role !== "tool") return ""
  return last.content
    .filter((part) => part.type === "tool-result")
    .map((part) => `${part.name}:${part.isFailure ? "!" : ""}${JSON.stringify(part.result)}`)
    .join(" ")
}
