import { Clock, Context, Duration, Effect, Layer, Redacted, Result, Schema, type Scope } from "effect"
import { HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import {
  AidreamError,
  type AidreamErrorReason,
  type EndpointName,
  Refused,
  Unacceptable,
  Unreachable
} from "../../domain/aidream/AidreamError.ts"
import { readApiError } from "../../domain/aidream/ApiError.ts"
import * as Endpoint from "../../domain/aidream/Endpoint.ts"
import { type AgentId, ConversationId, RunId } from "../../domain/aidream/Ids.ts"
import {
  CancelResponse,
  DesktopInstance,
  type PendingCall,
  PendingCalls,
  pendingCallsOf
} from "../../domain/aidream/PendingCall.ts"
import { ToolResultsRequest, ToolResultsResponse } from "../../domain/aidream/ToolResults.ts"
import { ContinueRequest, ResumeRequest, StartRequest } from "../../domain/aidream/TurnRequest.ts"
import { AidreamConfig } from "./AidreamConfig.ts"
import { type Credential, Credentials } from "./Credentials.ts"
import { openRunBody, type RunBody } from "./RunBody.ts"

/** A run whose stream is open. It closes with the scope it was opened in. */
export interface OpenRun {
  /** What cancel takes. Not the turn's `user_request_id`. */
  readonly runId: RunId | undefined
  /** Which conversation the backend says it is. */
  readonly conversationId: ConversationId | undefined
  readonly body: RunBody
}

/**
 * The endpoints of the backend (part 2), one method each.
 *
 * Requests carry a bearer token or a fingerprint, whatever `Credentials` says. A
 * 401 refreshes it once; a drained deployment is asked again within its window.
 * Nothing else is repeated here: only the caller knows whether a replay is safe.
 */
export class AidreamApi extends Context.Service<
  AidreamApi,
  {
    readonly start: (
      agentId: AgentId,
      body: StartRequest,
      options?: { readonly isVersion?: boolean | undefined }
    ) => Effect.Effect<OpenRun, AidreamError, Scope.Scope>
    readonly continue: (
      conversationId: ConversationId,
      body: ContinueRequest
    ) => Effect.Effect<OpenRun, AidreamError, Scope.Scope>
    readonly resume: (
      conversationId: ConversationId,
      body: ResumeRequest
    ) => Effect.Effect<OpenRun, AidreamError, Scope.Scope>
    /** Answers calls. Only the results funnel may use it. */
    readonly postResults: (
      conversationId: ConversationId,
      body: ToolResultsRequest
    ) => Effect.Effect<ToolResultsResponse, AidreamError>
    readonly pendingCalls: (conversationId: ConversationId) => Effect.Effect<ReadonlyArray<PendingCall>, AidreamError>
    /** Calls over all conversations; with an instance id, claimed for it. */
    readonly userPendingCalls: (instanceId?: string) => Effect.Effect<ReadonlyArray<PendingCall>, AidreamError>
    readonly desktopInstances: Effect.Effect<ReadonlyArray<DesktopInstance>, AidreamError>
    readonly cancel: (runId: RunId) => Effect.Effect<CancelResponse, AidreamError>
  }
>()("effect-frontend-tools/layers/aidream/AidreamApi") {
  static readonly layer = Layer.effect(
    AidreamApi,
    Effect.gen(function* () {
      const config = yield* AidreamConfig
      const credentials = yield* Credentials
      const client = yield* HttpClient.HttpClient
      const streaming = HttpClient.withScope(client)
      const baseUrl = config.baseUrl.replace(/\/+$/, "")
      const drainMillis = Duration.toMillis(config.drainWindow)

      const send = <R>(
        via: HttpClient.HttpClient.With<HttpClientError.HttpClientError, R>,
        endpoint: EndpointName,
        request: HttpClientRequest.HttpClientRequest
      ): Effect.Effect<HttpClientResponse.HttpClientResponse, AidreamError, R> => {
        const failed = (reason: AidreamErrorReason) => new AidreamError({ endpoint, reason })

        const attempt = Effect.fnUntraced(function* (credential: Credential) {
          const response = yield* via.execute(sign(request, credential)).pipe(
            // A trace header of ours would fail a browser's preflight.
            Effect.provideService(HttpClient.TracerPropagationEnabled, false),
            Effect.mapError((cause) => failed(new Unreachable({ problem: problemOf(cause) }))),
            Effect.timeoutOrElse({
              duration: config.attemptTimeout,
              orElse: () => Effect.fail(failed(new Unreachable({ problem: "no answer in time" })))
            })
          )
          if (response.status >= 200 && response.status < 300) return response
          return yield* failed(yield* refusal(response))
        })

        return Effect.gen(function* () {
          const giveUpAt = (yield* Clock.currentTimeMillis) + drainMillis
          let credential = yield* Effect.mapError(credentials.current, failed)
          let refreshed = false
          while (true) {
            const result = yield* Effect.result(attempt(credential))
            if (Result.isSuccess(result)) return result.success
            const { reason } = result.failure
            if (reason._tag !== "Refused") return yield* result.failure
            if (reason.error.status === 401 && !refreshed) {
              refreshed = true
              credential = yield* Effect.mapError(credentials.refresh, failed)
            } else if (reason.drained) {
              const pause = drainPause(reason.retryAfterMillis)
              if ((yield* Clock.currentTimeMillis) + pause > giveUpAt) return yield* result.failure
              yield* Effect.sleep(pause)
            } else {
              return yield* result.failure
            }
          }
        })
      }

      const openStream = (endpoint: EndpointName, path: string, body: unknown) =>
        send(streaming, endpoint, post(path, body, Endpoint.NDJSON)).pipe(
          Effect.flatMap((response) =>
            Effect.map(
              openRunBody(response.stream, config),
              (runBody): OpenRun => ({
                runId: headerOf(response, Endpoint.Header.runId, RunId.make),
                conversationId: headerOf(response, Endpoint.Header.conversationId, ConversationId.make),
                body: runBody
              })
            )
          )
        )

      const post = (path: string, body: unknown, accept = "application/json") =>
        HttpClientRequest.post(`${baseUrl}${path}`).pipe(
          HttpClientRequest.accept(accept),
          HttpClientRequest.bodyJsonUnsafe(body)
        )

      const get = (path: string) => HttpClientRequest.get(`${baseUrl}${path}`).pipe(HttpClientRequest.acceptJson)

      const ask = <S extends Schema.ConstraintDecoder<unknown>>(
        endpoint: EndpointName,
        request: HttpClientRequest.HttpClientRequest,
        schema: S
      ): Effect.Effect<S["Type"], AidreamError> => {
        const unacceptable = (problem: string) => new AidreamError({ endpoint, reason: new Unacceptable({ problem }) })
        return send(client, endpoint, request).pipe(
          Effect.flatMap((response) =>
            response.text.pipe(
              Effect.mapError(
                (cause) => new AidreamError({ endpoint, reason: new Unreachable({ problem: problemOf(cause) }) })
              ),
              Effect.timeoutOrElse({
                duration: config.attemptTimeout,
                orElse: () =>
                  Effect.fail(
                    new AidreamError({ endpoint, reason: new Unreachable({ problem: "the answer stalled" }) })
                  )
              })
            )
          ),
          Effect.flatMap((text) =>
            Effect.try({ try: (): unknown => JSON.parse(text), catch: () => unacceptable("the answer is not JSON") })
          ),
          Effect.flatMap((body) =>
            Effect.mapError(Schema.decodeUnknownEffect(schema)(body), (error) => unacceptable(error.message))
          )
        )
      }

      return AidreamApi.of({
        start: (agentId, body, options) => {
          const path = Endpoint.startPath(agentId)
          return openStream("start", options?.isVersion === true ? `${path}?is_version=true` : path, encodeStart(body))
        },
        continue: (id, body) => openStream("continue", Endpoint.continuePath(id), encodeContinue(body)),
        resume: (id, body) => openStream("resume", Endpoint.resumePath(id), encodeResume(body)),
        postResults: (id, body) =>
          ask("tool_results", post(Endpoint.resultsPath(id), encodeResults(body)), ToolResultsResponse),
        pendingCalls: (id) =>
          Effect.map(ask("pending_calls", get(Endpoint.pendingCallsPath(id)), PendingCalls), pendingCallsOf),
        userPendingCalls: (instanceId) => {
          const request = get(Endpoint.userPendingCallsPath)
          return Effect.map(
            ask(
              "pending_calls",
              instanceId === undefined ? request : HttpClientRequest.setUrlParam(request, "instance_id", instanceId),
              PendingCalls
            ),
            pendingCallsOf
          )
        },
        desktopInstances: ask("desktop_instances", get(Endpoint.desktopInstancesPath), Schema.Array(DesktopInstance)),
        cancel: (runId) => ask("cancel", post(Endpoint.cancelPath(runId), {}), CancelResponse)
      })
    })
  )
}

const encodeStart = Schema.encodeSync(StartRequest)
const encodeContinue = Schema.encodeSync(ContinueRequest)
const encodeResume = Schema.encodeSync(ResumeRequest)
const encodeResults = Schema.encodeSync(ToolResultsRequest)

/** Bounds of what a drained deployment may ask for. */
const MIN_DRAIN_PAUSE = 1000
const MAX_DRAIN_PAUSE = 15_000

const drainPause = (asked: number | undefined) =>
  Math.min(Math.max(asked ?? MIN_DRAIN_PAUSE, MIN_DRAIN_PAUSE), MAX_DRAIN_PAUSE)

const sign = (request: HttpClientRequest.HttpClientRequest, credential: Credential) => {
  const fingerprint = credential.fingerprint
  const marked =
    fingerprint === undefined
      ? request
      : HttpClientRequest.setHeader(request, Endpoint.Header.fingerprint, Redacted.value(fingerprint))
  return credential._tag === "Bearer" ? HttpClientRequest.bearerToken(marked, credential.token) : marked
}

const headerOf = <A>(
  response: HttpClientResponse.HttpClientResponse,
  name: string,
  make: (value: string) => A
): A | undefined => {
  const value = response.headers[name]
  return value === undefined || value === "" ? undefined : make(value)
}

const refusal = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
  const text = yield* Effect.orElseSucceed(response.text, () => "")
  const seconds = Number(response.headers["retry-after"])
  return new Refused({
    error: readApiError(response.status, text),
    drained: response.status === 503 && response.headers[Endpoint.Header.drain] === "deployment",
    retryAfterMillis: Number.isFinite(seconds) ? seconds * 1000 : undefined
  })
})

// The message of a client error names method and URL, never a header.
const problemOf = (cause: unknown): string => (cause instanceof Error ? cause.message : "the request failed")
