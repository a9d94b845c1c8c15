import { Effect, type Layer, Option, Redacted } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Header, NDJSON } from "../../domain/aidream/Endpoint.ts"
import { AgentId, ConversationId, RunId } from "../../domain/aidream/Ids.ts"
import { Authentication, type Credentials, type Identity } from "./Authentication.ts"
import { BackendConfig } from "./BackendConfig.ts"
import { failureResponse, refusalResponse } from "./ErrorResponse.ts"
import { Ledger, type LedgerFailure } from "./Ledger.ts"
import { agentNotFound, conversationNotFound, type Refusal, runNotFound } from "./Refusal.ts"
import { continueBody, resultsBody, resumeBody, startBody } from "./RequestBody.ts"
import { type OpenedRun, Turns } from "./Turns.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

interface Call {
  readonly request: Request
  readonly identity: Identity
  readonly params: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
}

/**
 * The endpoints of the contract (part 2), to mount in any Effect HTTP server.
 *
 * Each is served under both spellings, with and without a leading `/api`. Every
 * request is authenticated, and what it names must be the caller's.
 */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Authentication | BackendConfig | Ledger | Turns> =
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const authentication = yield* Authentication
      const { maxBodyBytes } = yield* BackendConfig
      const ledger = yield* Ledger
      const turns = yield* Turns

      const route = (
        method: "GET" | "POST",
        paths: ReadonlyArray<`/${string}`>,
        handle: (call: Call) => Effect.Effect<Response, Refusal | LedgerFailure>
      ) =>
        Effect.forEach(
          paths.flatMap((path): ReadonlyArray<`/${string}`> => [path, `/api${path}`]),
          (path) =>
            router.add(method, path, (request) =>
              Effect.gen(function* () {
                const identity = yield* authentication.identify(credentialsOf(request))
                const params = yield* HttpRouter.params
                return yield* handle({ request, identity, params, query: queryOf(request) })
              }).pipe(
                Effect.catchTag("Refusal", (refusal) => Effect.succeed(refusalResponse(refusal))),
                Effect.catchTag("LedgerFailure", (failure) =>
                  Effect.as(Effect.logError(failure.message, failure.cause), failureResponse(failure))
                )
              )
            ),
          { discard: true }
        )

      const conversation = (rest: string): ReadonlyArray<`/${string}`> => [
        `/ai/conversations/:id${rest}`,
        `/ai/conversation/:id${rest}`
      ]

      yield* route("POST", ["/ai/agent/:id", "/ai/agents/:id"], ({ identity, params, query, request }) =>
        Effect.gen(function* () {
          const id = yield* named(params.id, AgentId.make, () => agentNotFound(""))
          const body = yield* startBody(request, maxBodyBytes)
          const isVersion = query.get("is_version") === "true" || query.get("is_version") === "1"
          return runResponse(yield* turns.start(identity, id, body, { isVersion }))
        })
      )

      yield* route("POST", conversation(""), ({ identity, params, request }) =>
        Effect.gen(function* () {
          const id = yield* conversationOf(params)
          const body = yield* continueBody(request, maxBodyBytes)
          return runResponse(yield* turns.continue(identity, id, body))
        })
      )

      yield* route("POST", conversation("/resume"), ({ identity, params, request }) =>
        Effect.gen(function* () {
          const id = yield* conversationOf(params)
          const body = yield* resumeBody(request, maxBodyBytes)
          return runResponse(yield* turns.resume(identity, id, body))
        })
      )

      yield* route("POST", conversation("/tool_results"), ({ identity, params, request }) =>
        Effect.gen(function* () {
          const id = yield* conversationOf(params)
          const body = yield* resultsBody(request, maxBodyBytes)
          return json(yield* ledger.resolve(identity.owner, id, body))
        })
      )

      yield* route("GET", conversation("/pending_calls"), ({ identity, params }) =>
        Effect.flatMap(conversationOf(params), (id) => Effect.map(ledger.pendingCalls(identity.owner, id), json))
      )

      yield* route("GET", ["/ai/user/pending_calls"], ({ identity, query }) =>
        Effect.map(ledger.userPendingCalls(identity.owner, query.get("instance_id") || undefined), json)
      )

      yield* route("GET", ["/desktop-instances"], ({ identity }) =>
        Effect.map(ledger.desktopInstances(identity.owner), json)
      )

      yield* route("POST", ["/ai/cancel/:id"], ({ identity, params }) =>
        Effect.flatMap(named(params.id, RunId.make, runNotFound), (id) => Effect.map(turns.cancel(identity, id), json))
      )
    })
  )

const json = (body: unknown): Response => HttpServerResponse.jsonUnsafe(body)

const runResponse = (run: OpenedRun): Response =>
  HttpServerResponse.stream(run.body, {
    contentType: NDJSON,
    headers: {
      [Header.runId]: run.runId,
      [Header.conversationId]: run.conversationId,
      "cache-control": "no-store",
      // Proxies that buffer would hold back what a client has to act on.
      "x-accel-buffering": "no"
    }
  })

const named = <A>(value: string | undefined, make: (value: string) => A, missing: () => Refusal) =>
  value === undefined || value === "" ? Effect.fail(missing()) : Effect.succeed(make(value))

const conversationOf = (params: Call["params"]) => named(params.id, ConversationId.make, conversationNotFound)

const credentialsOf = ({ headers }: Request): Credentials => {
  const bearer = /^bearer\s+(\S+)\s*$/i.exec(headers.authorization ?? "")?.[1]
  const fingerprint = headers[Header.fingerprint]?.trim()
  return {
    bearer: bearer === undefined ? Option.none() : Option.some(Redacted.make(bearer)),
    fingerprint: fingerprint ? Option.some(Redacted.make(fingerprint)) : Option.none()
  }
}

const queryOf = ({ url }: Request) => new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?")) : "")
