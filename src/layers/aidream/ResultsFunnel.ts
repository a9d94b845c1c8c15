import { Array as Arr, Context, Duration, Effect, FiberSet, Layer, Random, Result } from "effect"
import type { AidreamError } from "../../domain/aidream/AidreamError.ts"
import { type ConversationId, keyOf, type UserRequestId } from "../../domain/aidream/Ids.ts"
import {
  type ClientToolResult,
  isDelivered,
  requestToResume,
  type ToolResultsResponse
} from "../../domain/aidream/ToolResults.ts"
import { AidreamApi } from "./AidreamApi.ts"
import { AidreamConfig } from "./AidreamConfig.ts"
import { CallJournal } from "./CallJournal.ts"
import { Continuations } from "./Continuations.ts"
import { Conversations } from "./Conversations.ts"
import { continuationKey, Obligations } from "./Obligations.ts"

/** The answer to one call, and whose it is. */
export interface Outcome {
  readonly conversationId: ConversationId
  readonly userRequestId: UserRequestId | undefined
  /** The turn of this process the call belongs to; `undefined` when a restart lies between. */
  readonly turn: number | undefined
  readonly result: ClientToolResult
  /** Confirmed before, and posted again only for the backend's word on continuing. */
  readonly owed?: boolean | undefined
}

/**
 * The one way an answer reaches the backend (part 7).
 *
 * Answers of one conversation that are ready in the same tick share a post; none
 * waits for a sibling that still runs. An answer is settled when the backend
 * confirmed it; until then it stays in the journal and is offered again. What the
 * backend says about continuing goes to `Continuations` before anything else happens.
 */
export class ResultsFunnel extends Context.Service<
  ResultsFunnel,
  {
    /** Posts an answer with whatever else is ready. Returns at once. */
    readonly submit: (outcome: Outcome) => Effect.Effect<void>
    /**
     * Offers again what the backend has not confirmed, and asks anew about
     * continuations that are owed. At start and on waking up.
     */
    readonly replay: (conversationId?: ConversationId) => Effect.Effect<void>
    /**
     * The same before a new message: what is unconfirmed is offered again, but nothing of
     * the older turns is continued any more.
     */
    readonly supersede: (conversationId: ConversationId) => Effect.Effect<void>
  }
>()("effect-frontend-tools/layers/aidream/ResultsFunnel") {
  static readonly layer = Layer.effect(
    ResultsFunnel,
    Effect.gen(function* () {
      const api = yield* AidreamApi
      const config = yield* AidreamConfig
      const journal = yield* CallJournal
      const obligations = yield* Obligations
      const continuations = yield* Continuations
      const conversations = yield* Conversations
      const posts = yield* FiberSet.make()
      const baseDelay = Duration.toMillis(config.resultBackoff)

      const buckets = new Map<ConversationId, Array<Outcome>>()
      // Calls whose post is under way: a replay must not double it.
      const inFlight = new Set<string>()

      const settle = (outcome: Outcome, delivery: "delivered" | "kept" | "dropped", problem?: string | undefined) => {
        const { call_id: callId } = outcome.result
        inFlight.delete(keyOf(outcome.conversationId, callId))
        conversations.get(outcome.conversationId).calls.delete(callId)
        if (outcome.owed === true) return
        conversations.publish(outcome.conversationId, { _tag: "CallSettled", callId, delivery, problem })
      }

      const forget = (outcome: Outcome) =>
        Effect.ignore(journal.forget(outcome.conversationId, outcome.result.call_id), { log: true })

      const keep = (batch: ReadonlyArray<Outcome>, problem: string) =>
        Effect.sync(() => {
          for (const outcome of batch) settle(outcome, "kept", problem)
        })

      const drop = Effect.fnUntraced(function* (batch: ReadonlyArray<Outcome>, problem: string) {
        for (const outcome of batch) settle(outcome, "dropped", problem)
        yield* Effect.logError(`the backend refused ${batch.length} results: ${problem}`)
        yield* Effect.forEach(batch, forget, { discard: true })
      })

      const accept = Effect.fnUntraced(function* (
        conversationId: ConversationId,
        batch: Arr.NonEmptyReadonlyArray<Outcome>,
        response: ToolResultsResponse
      ) {
        const userRequestId = requestToResume(response)
        // Local displays settle first, then the claim is taken; nothing suspends in between.
        for (const outcome of batch) {
          if (isDelivered(response, outcome.result.call_id)) settle(outcome, "delivered")
          else settle(outcome, "dropped", "the backend does not know this call")
        }
        if (response.continuation_needed) {
          yield* continuations.offer({ conversationId, userRequestId, turn: newestTurn(batch) })
          const { result } = Arr.lastNonEmpty(batch)
          yield* Effect.ignore(obligations.owe({ conversationId, userRequestId, result }), { log: true })
        } else {
          yield* Effect.ignore(settleOwed(conversationId, batch), { log: true })
        }
        yield* Effect.forEach(batch, forget, { discard: true })
      })

      // An owed continuation whose answer was judged again and needs none is paid.
      const settleOwed = (conversationId: ConversationId, batch: ReadonlyArray<Outcome>) =>
        Effect.forEach(
          obligations.list(conversationId),
          (owed) =>
            batch.some((outcome) => outcome.result.call_id === owed.result.call_id)
              ? obligations.paid(continuationKey(conversationId, owed.userRequestId))
              : Effect.void,
          { discard: true }
        )

      const send = Effect.fnUntraced(function* (
        conversationId: ConversationId,
        batch: Arr.NonEmptyReadonlyArray<Outcome>
      ): Effect.fn.Return<ToolResultsResponse, AidreamError> {
        const body = { results: Arr.map(batch, ({ result }) => result), instance_id: config.instanceId ?? null }
        for (let attempt = 1; ; attempt++) {
          const result = yield* Effect.result(api.postResults(conversationId, body))
          if (Result.isSuccess(result)) return result.success
          if (!result.failure.isTransient || attempt >= config.resultAttempts) return yield* result.failure
          const jitter = yield* Random.nextIntBetween(0, 199)
          yield* Effect.sleep(baseDelay * 2 ** (attempt - 1) + jitter)
        }
      })

      const post = (conversationId: ConversationId, batch: Arr.NonEmptyReadonlyArray<Outcome>): Effect.Effect<void> =>
        send(conversationId, batch).pipe(
          Effect.matchEffect({
            onSuccess: (response) => accept(conversationId, batch, response),
            onFailure: (error) => {
              const { status } = error
              const isFinal = !error.isTransient && status !== undefined && status !== 401
              if (!isFinal) return keep(batch, error.message)
              // One unacceptable answer must not take its siblings down with it.
              return status === 422 && batch.length > 1
                ? Effect.forEach(batch, (outcome) => post(conversationId, [outcome]), { discard: true })
                : drop(batch, error.message)
            }
          })
        )

      const flush = (conversationId: ConversationId) =>
        Effect.suspend(() => {
          const batch = buckets.get(conversationId) ?? []
          buckets.delete(conversationId)
          if (!Arr.isArrayNonEmpty(batch)) return Effect.void
          return Effect.andThen(
            post(conversationId, batch),
            Effect.sync(() => conversations.check(conversations.get(conversationId)))
          )
        })

      const submit = (outcome: Outcome): Effect.Effect<void> =>
        Effect.suspend(() => {
          const { call_id: callId } = outcome.result
          const key = keyOf(outcome.conversationId, callId)
          if (inFlight.has(key)) return Effect.void
          inFlight.add(key)
          const conversation = conversations.get(outcome.conversationId)
          conversation.calls.set(callId, {
            turn: outcome.turn ?? conversation.turn,
            userRequestId: outcome.userRequestId,
            phase: "posting"
          })
          const bucket = buckets.get(outcome.conversationId)
          if (bucket !== undefined) {
            bucket.push(outcome)
            return Effect.void
          }
          buckets.set(outcome.conversationId, [outcome])
          return Effect.yieldNow.pipe(Effect.andThen(flush(outcome.conversationId)), FiberSet.run(posts), Effect.asVoid)
        })

      const resubmit = (conversationId: ConversationId | undefined, turn: number | undefined) =>
        forEachOf(
          () => journal.entries(conversationId),
          ({ delegation, ...entry }) =>
            entry._tag === "Finished"
              ? submit({
                  conversationId: delegation.conversationId,
                  userRequestId: delegation.userRequestId,
                  turn,
                  result: entry.result
                })
              : Effect.void
        )

      return ResultsFunnel.of({
        submit,
        replay: (which) =>
          Effect.andThen(
            resubmit(which, undefined),
            forEachOf(
              () => obligations.list(which),
              ({ conversationId, userRequestId, result }) =>
                submit({ conversationId, userRequestId, result, turn: undefined, owed: true })
            )
          ),
        supersede: (conversationId) =>
          Effect.andThen(
            forEachOf(
              () => obligations.list(conversationId),
              ({ userRequestId }) =>
                Effect.ignore(obligations.paid(continuationKey(conversationId, userRequestId)), { log: true })
            ),
            resubmit(conversationId, SUPERSEDED)
          )
      })
    })
  )
}

/** Does something for each of what there is when the effect runs. */
const forEachOf = <A>(list: () => ReadonlyArray<A>, f: (item: A) => Effect.Effect<void>): Effect.Effect<void> =>
  Effect.suspend(() => Effect.forEach(list(), f, { discard: true }))

/** The number of no turn: what carries it belongs to a turn before the present one. */
const SUPERSEDED = 0

const newestTurn = (batch: ReadonlyArray<Outcome>): number | undefined => {
  const turns = batch.flatMap(({ turn }) => (turn === undefined ? [] : [turn]))
  return turns.length === 0 ? undefined : Math.max(...turns)
}
