import { Context, Effect, Layer, Schema } from "effect"
import type { KeyValueStore } from "effect/persistence"
import { ConversationId, UserRequestId } from "../../domain/aidream/Ids.ts"
import { ClientToolResult } from "../../domain/aidream/ToolResults.ts"
import { makeStoredMap } from "./StoredMap.ts"

/** A continuation this client was asked for and has not finished. */
export const Obligation = Schema.Struct({
  conversationId: ConversationId,
  userRequestId: Schema.optional(UserRequestId),
  /** An answer the backend confirmed. Posting it again makes the backend judge anew. */
  result: ClientToolResult
})
export type Obligation = typeof Obligation.Type

/** What single-flight, retries and obligations are keyed by (part 8.1). */
export const continuationKey = (conversationId: ConversationId, userRequestId: UserRequestId | undefined): string =>
  userRequestId ?? `conv:${conversationId}`

/**
 * Continuations that are owed (parts 3.6, 8.4, 9.2).
 *
 * An answer that emptied a turn's calls is kept until the resume it led to said that
 * it is complete. When the resume is lost, posting that answer again brings the
 * backend's fresh word on whether one is needed.
 */
export class Obligations extends Context.Service<
  Obligations,
  {
    readonly list: (conversationId?: ConversationId) => ReadonlyArray<Obligation>
    readonly owe: (obligation: Obligation) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
    readonly paid: (key: string) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
  }
>()("effect-frontend-tools/layers/aidream/Obligations") {
  static readonly layer = Layer.effect(
    Obligations,
    Effect.gen(function* () {
      const stored = yield* makeStoredMap("aidream/owed/", Obligation)
      return Obligations.of({
        list: (conversationId) =>
          stored.values().filter((owed) => conversationId === undefined || owed.conversationId === conversationId),
        owe: (obligation) =>
          stored.set(continuationKey(obligation.conversationId, obligation.userRequestId), obligation),
        paid: (key) => (stored.get(key) === undefined ? Effect.void : stored.remove(key))
      })
    })
  )
}
