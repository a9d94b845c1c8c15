import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { KeyValueStore } from "effect/persistence"
import { Delegation } from "../../domain/aidream/Delegation.ts"
import { type CallId, type ConversationId, keyOf } from "../../domain/aidream/Ids.ts"
import { ClientToolResult } from "../../domain/aidream/ToolResults.ts"
import { makeStoredMap } from "./StoredMap.ts"

const entryFields = {
  delegation: Delegation,
  /** When the entry was made, in milliseconds of the clock. */
  since: Schema.Finite
}

/** Where a delegated call is, as far as the journal knows. */
export const JournalEntry = Schema.Union([
  /** Recorded; the tool has not run. */
  Schema.TaggedStruct("Received", entryFields),
  /** A person is asked until `expiresAt`; the tool has not run. */
  Schema.TaggedStruct("Asking", { ...entryFields, expiresAt: Schema.Finite }),
  /** The tool was started. Found after a crash: its outcome is unknown. */
  Schema.TaggedStruct("Running", entryFields),
  /** There is an answer, and the backend has not confirmed it. */
  Schema.TaggedStruct("Finished", { ...entryFields, result: ClientToolResult })
])
export type JournalEntry = typeof JournalEntry.Type

/**
 * The durable record of delegated calls (part 7.4).
 *
 * A call is recorded before it runs and its answer before it is posted; the
 * backend's confirmation clears it. So a crash leaves either an answer that can be
 * offered again, or a call whose outcome is unknown; never a reason to run it a
 * second time.
 */
export class CallJournal extends Context.Service<
  CallJournal,
  {
    readonly get: (conversationId: ConversationId, callId: CallId) => JournalEntry | undefined
    readonly entries: (conversationId?: ConversationId) => ReadonlyArray<JournalEntry>
    readonly received: (delegation: Delegation) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
    readonly asking: (
      delegation: Delegation,
      expiresAt: number
    ) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
    readonly running: (delegation: Delegation) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
    readonly finished: (
      delegation: Delegation,
      result: ClientToolResult
    ) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
    /** The backend has the answer, or will never take it. */
    readonly forget: (
      conversationId: ConversationId,
      callId: CallId
    ) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
  }
>()("effect-frontend-tools/layers/aidream/CallJournal") {
  static readonly layer = Layer.effect(
    CallJournal,
    Effect.gen(function* () {
      const stored = yield* makeStoredMap("aidream/calls/", JournalEntry)

      const put = (delegation: Delegation, make: (fields: { delegation: Delegation; since: number }) => JournalEntry) =>
        Effect.flatMap(Clock.currentTimeMillis, (since) =>
          stored.set(keyOf(delegation.conversationId, delegation.callId), make({ delegation, since }))
        )

      return CallJournal.of({
        get: (conversationId, callId) => stored.get(keyOf(conversationId, callId)),
        entries: (conversationId) =>
          stored
            .values()
            .filter((entry) => conversationId === undefined || entry.delegation.conversationId === conversationId),
        received: (delegation) => put(delegation, (fields) => ({ _tag: "Received", ...fields })),
        asking: (delegation, expiresAt) => put(delegation, (fields) => ({ _tag: "Asking", ...fields, expiresAt })),
        running: (delegation) => put(delegation, (fields) => ({ _tag: "Running", ...fields })),
        finished: (delegation, result) => put(delegation, (fields) => ({ _tag: "Finished", ...fields, result })),
        forget: (conversationId, callId) => stored.remove(keyOf(conversationId, callId))
      })
    })
  )
}
