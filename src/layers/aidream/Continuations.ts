import { Clock, Context, Duration, Effect, FiberMap, Layer, Result } from "effect"
import type { DeferredReason, TurnOutcome } from "../../domain/aidream/AgentEvent.ts"
import type { AidreamError } from "../../domain/aidream/AidreamError.ts"
import { resumeRefusal } from "../../domain/aidream/ApiError.ts"
import type { ConversationId, UserRequestId } from "../../domain/aidream/Ids.ts"
import { AidreamConfig } from "./AidreamConfig.ts"
import { type Conversation, Conversations } from "./Conversations.ts"
import { continuationKey, Obligations } from "./Obligations.ts"

/** The backend's word that a turn has no unanswered call left. */
export interface ContinuationSignal {
  readonly conversationId: ConversationId
  readonly userRequestId: UserRequestId | undefined
  /** The turn whose answers were posted; `undefined` when a restart lies between. */
  readonly turn: number | undefined
}

/** Opens a resume. Succeeds once its stream is open; reading it is not the caller's business. */
export type ResumeRunner = (signal: ContinuationSignal) => Effect.Effect<void, AidreamError>

interface Claim {
  readonly conversation: Conversation
  at: number
  /** An attempt is under way. */
  busy: boolean
}

/**
 * Who opens a resume, and when (part 8).
 *
 * A signal claims its turn in the same synchronous step it is seen in, so however
 * many answers say "continue", one resume is opened. The claim ends when the stream
 * is open or the attempt is given up, under the key it was taken with. A signal that
 * beats the end of a run waits for it in one slot per conversation.
 */
export class Continuations extends Context.Service<
  Continuations,
  {
    /** Takes a signal. Never waits for the resume. */
    readonly offer: (signal: ContinuationSignal) => Effect.Effect<void>
    /** A run of the conversation ended: what waited for it starts. */
    readonly drain: (conversation: Conversation) => Effect.Effect<void>
    /** Gives up everything claimed or queued for the conversation. */
    readonly cancel: (conversation: Conversation) => Effect.Effect<void>
    /** Sets who opens resumes. Signals before that wait for it. */
    readonly attach: (runner: ResumeRunner) => Effect.Effect<void>
  }
>()("effect-frontend-tools/layers/aidream/Continuations") {
  static readonly layer = Layer.effect(
    Continuations,
    Effect.gen(function* () {
      const config = yield* AidreamConfig
      const conversations = yield* Conversations
      const obligations = yield* Obligations
      const clock = yield* Clock.Clock
      const owners = yield* FiberMap.make<string>()
      const ttl = Duration.toMillis(config.claimTtl)
      const backoff = Duration.toMillis(config.resumeBackoff)

      const claims = new Map<string, Claim>()
      const queued = new Map<ConversationId, ContinuationSignal>()
      const retriesUsed = new Map<string, number>()
      const waiting: Array<ContinuationSignal> = []
      let runner: ResumeRunner | undefined

      const now = () => clock.currentTimeMillisUnsafe()

      const claim = (key: string, conversation: Conversation): Claim | undefined => {
        const held = claims.get(key)
        if (held !== undefined && (held.busy || now() - held.at < ttl)) return undefined
        const taken = { conversation, at: now(), busy: false }
        claims.set(key, taken)
        conversation.holds++
        return taken
      }

      const release = (key: string, held: Claim) => {
        if (claims.get(key) === held) claims.delete(key)
        held.conversation.holds--
      }

      const queue = (signal: ContinuationSignal, conversation: Conversation) => {
        if (!queued.has(signal.conversationId)) conversation.holds++
        queued.set(signal.conversationId, signal)
      }

      const unqueue = (conversation: Conversation): ContinuationSignal | undefined => {
        const signal = queued.get(conversation.id)
        if (signal !== undefined) {
          queued.delete(conversation.id)
          conversation.holds--
        }
        return signal
      }

      const defer = (
        signal: ContinuationSignal,
        conversation: Conversation,
        reason: DeferredReason,
        error?: AidreamError
      ) => {
        const outcome = outcomes[reason]
        if (outcome !== undefined) conversation.outcome = outcome
        conversations.publish(signal.conversationId, { _tag: "ResumeDeferred", reason, error })
      }

      /** What keeps a signal from being acted on now, decided without a pause. */
      const obstacle = (
        signal: ContinuationSignal,
        conversation: Conversation
      ): "queue" | DeferredReason | undefined => {
        if (signal.turn !== undefined && signal.turn !== conversation.turn) return "superseded"
        if (conversation.runs > 0) return "queue"
        return hasWorkingCall(conversation, signal.userRequestId) ? "stale" : undefined
      }

      const own = Effect.fnUntraced(function* (
        key: string,
        held: Claim,
        signal: ContinuationSignal,
        open: ResumeRunner
      ): Effect.fn.Return<void> {
        const { conversation } = held
        while (true) {
          const blocked = obstacle(signal, conversation)
          if (blocked === "queue") return queue(signal, conversation)
          if (blocked !== undefined) return defer(signal, conversation, blocked)

          held.at = now()
          held.busy = true
          conversations.publish(signal.conversationId, { _tag: "Resuming", userRequestId: signal.userRequestId })
          const result = yield* Effect.result(open(signal))
          held.busy = false
          if (Result.isSuccess(result)) {
            retriesUsed.delete(key)
            return
          }

          const failure = classify(result.failure)
          if (failure !== "conflict" && failure !== "unreachable") {
            // What no later attempt can change is no longer owed.
            if (result.failure.status !== 401) yield* Effect.ignore(obligations.paid(key), { log: true })
            retriesUsed.delete(key)
            return defer(signal, conversation, failure, result.failure)
          }
          const used = retriesUsed.get(key) ?? 0
          if (used >= config.resumeRetries) return defer(signal, conversation, failure, result.failure)
          retriesUsed.set(key, used + 1)
          held.at = now()
          yield* Effect.sleep(backoff * (used + 1))
        }
      })

      const offer = (signal: ContinuationSignal): Effect.Effect<void> =>
        Effect.suspend(() => {
          if (runner === undefined) {
            waiting.push(signal)
            return Effect.void
          }
          // From here to the claim nothing may suspend: a second signal must find it.
          const conversation = conversations.get(signal.conversationId)
          const key = continuationKey(signal.conversationId, signal.userRequestId)
          const held = claim(key, conversation)
          if (held === undefined) return Effect.void
          const blocked = obstacle(signal, conversation)
          if (blocked !== undefined) {
            if (blocked === "queue") queue(signal, conversation)
            else defer(signal, conversation, blocked)
            release(key, held)
            return Effect.void
          }
          return own(key, held, signal, runner).pipe(
            Effect.ensuring(
              Effect.sync(() => {
                release(key, held)
                conversations.check(conversation)
              })
            ),
            FiberMap.run(owners, key, { startImmediately: true }),
            Effect.asVoid
          )
        })

      return Continuations.of({
        offer,
        drain: (conversation) =>
          Effect.suspend(() => {
            if (conversation.runs > 0) return Effect.void
            const signal = unqueue(conversation)
            return signal === undefined ? Effect.void : offer(signal)
          }),
        cancel: (conversation) =>
          Effect.suspend(() => {
            unqueue(conversation)
            const keys = [...claims].filter(([, held]) => held.conversation === conversation).map(([key]) => key)
            return Effect.forEach(keys, (key) => FiberMap.remove(owners, key), { discard: true })
          }),
        attach: (open) =>
          Effect.suspend(() => {
            runner = open
            return Effect.forEach(waiting.splice(0), offer, { discard: true })
          })
      })
    })
  )
}

/** What a turn comes to when its continuation is given up; undefined leaves it as it is. */
const outcomes: Readonly<Record<DeferredReason, TurnOutcome | undefined>> = {
  outstanding: "paused",
  conflict: "paused",
  unreachable: "paused",
  settled: "settled",
  refused: "failed",
  superseded: undefined,
  stale: undefined
}

const classify = (error: AidreamError): Exclude<DeferredReason, "superseded" | "stale"> => {
  if (error.isTransient) return "unreachable"
  if (error.reason._tag !== "Refused") return "refused"
  const refusal = resumeRefusal(error.reason.error)
  return refusal === undefined || refusal === "terminal" ? "refused" : refusal
}

/** Whether a call of the same turn is still asked about or running here. An unnamed turn may be any. */
const hasWorkingCall = (conversation: Conversation, userRequestId: UserRequestId | undefined): boolean => {
  for (const call of conversation.calls.values()) {
    if (call.phase !== "working") continue
    if (userRequestId === undefined || call.userRequestId === undefined || call.userRequestId === userRequestId) {
      return true
    }
  }
  return false
}
