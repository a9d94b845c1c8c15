import { Clock, Context, Deferred, Effect, Layer, SubscriptionRef } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import { type CallId, type ConversationId, keyOf } from "../../domain/aidream/Ids.ts"
import type { Tier } from "../../domain/aidream/Tier.ts"

/** What a person is asked. */
export interface ApprovalAsk {
  readonly conversationId: ConversationId
  readonly callId: CallId
  readonly tool: string
  readonly tier: Tier
  readonly arguments: unknown
  readonly agentName: string | undefined
  /** The host a remembered approval would trust. */
  readonly host: string | undefined
  /** The backend's own approval record: the decision is about exactly it (part 6.6). */
  readonly authorization: JsonObject | undefined
  /** Until when the answer counts, in milliseconds of the clock. */
  readonly expiresAt: number
}

export interface ApprovalDecision {
  readonly conversationId: ConversationId
  readonly callId: CallId
  readonly allow: boolean
  /** Trust the call's host for action calls of this conversation. */
  readonly remember?: "conversation" | undefined
}

/** How an ask ended. */
export type ApprovalAnswer =
  | { readonly _tag: "Allowed"; readonly remember: boolean }
  | { readonly _tag: "Denied" }
  | { readonly _tag: "Expired" }

/**
 * Asking a person about calls (part 6.5).
 *
 * An ask ends with the first decision for its call, or at its expiry, which counts as
 * a denial; then it is withdrawn from the list.
 */
export class Approvals extends Context.Service<
  Approvals,
  {
    /** Puts a question up and waits for its answer. */
    readonly ask: (ask: ApprovalAsk) => Effect.Effect<ApprovalAnswer>
    /** The open questions, and every change of them: `SubscriptionRef.changes`. */
    readonly open: SubscriptionRef.SubscriptionRef<ReadonlyArray<ApprovalAsk>>
    /** Answers a question. Says whether it was open: a second click decides nothing. */
    readonly decide: (decision: ApprovalDecision) => Effect.Effect<boolean>
  }
>()("effect-frontend-tools/layers/aidream/Approvals") {
  static readonly layer = Layer.effect(
    Approvals,
    Effect.gen(function* () {
      const open = yield* SubscriptionRef.make<ReadonlyArray<ApprovalAsk>>([])
      const waiting = new Map<string, Deferred.Deferred<ApprovalAnswer>>()

      return Approvals.of({
        open,
        ask: Effect.fnUntraced(function* (ask) {
          const left = ask.expiresAt - (yield* Clock.currentTimeMillis)
          if (left <= 0) return { _tag: "Expired" }
          const answer = Deferred.makeUnsafe<ApprovalAnswer>()
          const key = keyOf(ask.conversationId, ask.callId)
          const withdraw = Effect.suspend(() => {
            if (waiting.get(key) === answer) waiting.delete(key)
            return SubscriptionRef.update(open, (asks) => asks.filter((other) => other !== ask))
          })
          return yield* Effect.suspend(() => {
            waiting.set(key, answer)
            return SubscriptionRef.update(open, (asks) => [...asks, ask])
          }).pipe(
            Effect.andThen(Deferred.await(answer)),
            Effect.timeoutOrElse({
              duration: left,
              orElse: () => Effect.succeed<ApprovalAnswer>({ _tag: "Expired" })
            }),
            Effect.ensuring(withdraw)
          )
        }),
        decide: (decision) =>
          Effect.sync(() => {
            const key = keyOf(decision.conversationId, decision.callId)
            const answer = waiting.get(key)
            if (answer === undefined) return false
            // Before the waiter runs on: a second decision must find nothing.
            waiting.delete(key)
            return Deferred.doneUnsafe(
              answer,
              Effect.succeed<ApprovalAnswer>(
                decision.allow
                  ? { _tag: "Allowed", remember: decision.remember === "conversation" }
                  : { _tag: "Denied" }
              )
            )
          })
      })
    })
  )
}
