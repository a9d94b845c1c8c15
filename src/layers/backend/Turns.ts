import { Context, Effect, Layer, type Stream } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import { type AgentId, ConversationId, RunId, UserRequestId } from "../../domain/aidream/Ids.ts"
import type { ContinueRequest, ResumeRequest, StartRequest } from "../../domain/aidream/TurnRequest.ts"
import type { Identity } from "./Authentication.ts"
import { BackendConfig } from "./BackendConfig.ts"
import * as Journal from "./Journal.ts"
import { type ConversationFacts, Ledger, type LedgerFailure, type RunKey, type TurnLimits } from "./Ledger.ts"
import { LiveRuns } from "./LiveRuns.ts"
import { conversationNotFound, type Problem, type Refusal, userInputRequired } from "./Refusal.ts"
import { type PreparedRun, type RunFields, RunPreparation } from "./RunPreparation.ts"
import * as RunStream from "./RunStream.ts"
import { encodeMessage, userMessage } from "./Transcript.ts"

/** A run that has begun. It goes on whether or not its body is read. */
export interface OpenedRun {
  readonly runId: RunId
  readonly conversationId: ConversationId
  readonly userRequestId: UserRequestId
  /** NDJSON, for one reader. */
  readonly body: Stream.Stream<Uint8Array>
}

type Opening = Effect.Effect<OpenedRun, Refusal | LedgerFailure>

/** Opens runs: new turns, and continuations of suspended ones (parts 2.1, 2.2, 2.4, 2.8). */
export class Turns extends Context.Service<
  Turns,
  {
    readonly start: (
      identity: Identity,
      agentId: AgentId,
      body: StartRequest,
      options: { readonly isVersion: boolean }
    ) => Opening
    readonly continue: (identity: Identity, conversationId: ConversationId, body: ContinueRequest) => Opening
    readonly resume: (identity: Identity, conversationId: ConversationId, body: ResumeRequest) => Opening
    /** Ends the turn of a run; answers with the state it is in now. */
    readonly cancel: (
      identity: Identity,
      runId: RunId
    ) => Effect.Effect<{ readonly status: string }, Refusal | LedgerFailure>
  }
>()("effect-frontend-tools/layers/backend/Turns") {
  static readonly layer = Layer.effect(
    Turns,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const preparation = yield* RunPreparation
      const live = yield* LiveRuns
      const config = yield* BackendConfig

      const begin = Effect.fnUntraced(function* (
        prepared: PreparedRun,
        run: {
          readonly key: RunKey
          readonly owner: string
          readonly variables: JsonObject
          readonly limits: TurnLimits
          readonly iteration: number
          readonly journal: Journal.Journal
        }
      ) {
        const stream = yield* RunStream.make(config.readerBuffer)
        yield* live.start({ ...prepared, ...run, providerBackoff: config.providerBackoff, stream })
        return {
          runId: run.key.runId,
          conversationId: run.key.conversationId,
          userRequestId: run.key.userRequestId,
          body: stream.body
        } satisfies OpenedRun
      })

      /** A turn with a new message, or with none on a retry. */
      const open = Effect.fnUntraced(function* (
        identity: Identity,
        conversationId: ConversationId,
        facts: ConversationFacts,
        body: ContinueRequest,
        options: { readonly isNew: boolean; readonly problems: ReadonlyArray<Problem> }
      ) {
        const prepared = yield* preparation.prepare({
          identity,
          agentId: facts.agentId,
          isVersion: facts.isVersion,
          fields: body,
          loadedTools: [],
          problems: options.problems
        })
        const message =
          body.user_input === undefined || body.user_input === null
            ? undefined
            : encodeMessage(userMessage(body.user_input))
        const limits = { maxIterations: body.max_iterations, maxRetries: body.max_retries_per_iteration }
        const userRequestId = UserRequestId.make(yield* newId)
        const runId = RunId.make(yield* newId)
        const run = { owner: identity.owner, variables: facts.variables, limits, iteration: 0 }
        if (!body.store) {
          if (!options.isNew) return yield* conversationNotFound()
          const key: RunKey = { runId, conversationId, userRequestId, generation: 1 }
          return yield* begin(withoutDelegation(prepared), {
            ...run,
            key,
            journal: Journal.ephemeral(message, userRequestId)
          })
        }
        // Nothing may come between the turn being this run's and the run being there.
        return yield* ledger
          .open({
            ...facts,
            owner: identity.owner,
            conversationId,
            runId,
            userRequestId,
            isNew: options.isNew,
            message,
            limits,
            metadata: scoping(body)
          })
          .pipe(
            Effect.flatMap((key) => begin(prepared, { ...run, key, journal: Journal.stored(ledger, key) })),
            Effect.uninterruptible
          )
      })

      return Turns.of({
        start: Effect.fnUntraced(function* (identity, agentId, body, options) {
          const given = body.conversation_id ?? undefined
          const conversationId = given ?? ConversationId.make(yield* newId)
          const facts = { agentId, isVersion: options.isVersion, variables: body.variables ?? {} }
          return yield* open(
            identity,
            conversationId,
            facts,
            { ...body, retry: false },
            {
              isNew: body.is_new ?? given === undefined,
              problems: isUuid(conversationId) ? [] : [notUuid(conversationId)]
            }
          )
        }),
        continue: Effect.fnUntraced(function* (identity, conversationId, body) {
          const facts = yield* ledger.conversation(identity.owner, conversationId)
          const hasInput = body.user_input !== undefined && body.user_input !== null && body.user_input.length > 0
          if (!hasInput && !body.retry) return yield* userInputRequired()
          return yield* open(identity, conversationId, facts, body, { isNew: false, problems: [] })
        }),
        resume: Effect.fnUntraced(function* (identity, conversationId, body) {
          const { owner } = identity
          const named = body.user_request_id?.trim()
          const turn = yield* ledger.find(owner, conversationId, named ? UserRequestId.make(named) : undefined)
          const prepared = yield* preparation.prepare({
            identity,
            agentId: turn.agentId,
            isVersion: turn.isVersion,
            fields: body,
            loadedTools: turn.loadedTools
          })
          const runId = RunId.make(yield* newId)
          return yield* ledger.claim(owner, conversationId, turn.userRequestId, runId).pipe(
            Effect.flatMap((key) =>
              begin(prepared, {
                key,
                owner,
                variables: turn.variables,
                limits: turn.limits,
                iteration: turn.iteration,
                journal: Journal.stored(ledger, key)
              })
            ),
            Effect.uninterruptible
          )
        }),
        cancel: Effect.fnUntraced(function* (identity, runId) {
          const { status, userRequestId } = yield* ledger.cancel(identity.owner, runId)
          if (status === "cancelled") yield* live.stop(userRequestId)
          return { status }
        })
      })
    })
  )
}

const newId = Effect.sync(() => globalThis.crypto.randomUUID())

const isUuid = (id: string) => /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(id)

const notUuid = (id: string): Problem => ({
  code: "invalid_uuid",
  message: `conversation_id "${id.slice(0, 80)}" is not a UUID`,
  path: ["conversation_id"]
})

/** A run without a ledger cannot wait for a client, so it is offered nothing a client would have to run. */
const withoutDelegation = (prepared: PreparedRun): PreparedRun => {
  const { tools } = prepared
  const served = () => {
    const set = tools.current()
    return { ...set, tools: set.tools.filter(({ route }) => route._tag === "Server") }
  }
  return { ...prepared, tools: { ...tools, current: served } }
}

const scopingKeys = [
  "source_app",
  "source_feature",
  "organization_id",
  "project_id",
  "task_id",
  "scope_ids",
  "initiation"
] as const

/** What a request says about where it belongs: kept with the turn, used by nobody here. */
const scoping = (body: RunFields): JsonObject =>
  Object.fromEntries(
    scopingKeys.flatMap((key) => (body[key] === undefined || body[key] === null ? [] : [[key, body[key]]]))
  )
