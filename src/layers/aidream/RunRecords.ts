import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import type { KeyValueStore } from "effect/persistence"
import { JsonObject, maybe } from "../../domain/aidream/Absent.ts"
import { ConversationId, RunId } from "../../domain/aidream/Ids.ts"
import { Initiator, PermissionMode } from "../../domain/aidream/Tier.ts"
import { StartRequest } from "../../domain/aidream/TurnRequest.ts"
import { makeStoredMap } from "./StoredMap.ts"

/** What a turn was started with beside its message; every resume repeats it. */
const { fields } = StartRequest
export const RunOptions = Schema.Struct({
  tools: Schema.optionalKey(Schema.toType(fields.tools)),
  tools_replace: fields.tools_replace,
  user: fields.user,
  store: Schema.optionalKey(Schema.Boolean),
  config_overrides: fields.config_overrides,
  writable_variables: Schema.optionalKey(Schema.Array(Schema.String)),
  allow_context_create: Schema.optionalKey(Schema.Boolean),
  debug: Schema.optionalKey(Schema.Boolean),
  source_app: fields.source_app,
  source_feature: fields.source_feature,
  organization_id: fields.organization_id,
  project_id: fields.project_id,
  task_id: fields.task_id,
  scope_ids: fields.scope_ids,
  target_instance_id: fields.target_instance_id,
  initiation: fields.initiation
})
export type RunOptions = typeof RunOptions.Type

/** What a run was sent with (part 6.3). */
export const RunRecord = Schema.Struct({
  conversationId: ConversationId,
  /** Known once the stream opened. */
  runId: Schema.optional(RunId),
  mode: PermissionMode,
  initiator: Initiator,
  agentName: Schema.optional(Schema.String),
  /** The tab the run is about; absent when there is none. */
  pinnedTab: Schema.optional(Schema.Int),
  /** Hosts whose action calls run unasked in this conversation. */
  trustedHosts: Schema.Array(Schema.String),
  options: RunOptions,
  /** Facts the pin resolved to, for the builders of the envelope. */
  pin: maybe(JsonObject),
  since: Schema.Finite
})
export type RunRecord = typeof RunRecord.Type

/** The record of a run nobody remembers: it asks, and trusts nothing (part 6.5). */
export const unknownRun = (conversationId: ConversationId): RunRecord => ({
  conversationId,
  runId: undefined,
  mode: "ask",
  initiator: "agent",
  agentName: undefined,
  pinnedTab: undefined,
  trustedHosts: [],
  options: {},
  since: 0
})

/** How many records are kept, and for how long (part 6.3). */
const CAPACITY = 50
const MAX_AGE = Duration.toMillis(Duration.hours(6))

/**
 * The newest run of each conversation, latched before its request leaves.
 *
 * Survives the process: a delegated call that is found again after a restart runs
 * under the mode its turn was sent with.
 */
export class RunRecords extends Context.Service<
  RunRecords,
  {
    readonly get: (conversationId: ConversationId) => Effect.Effect<RunRecord | undefined>
    readonly latch: (record: Omit<RunRecord, "since">) => Effect.Effect<RunRecord, KeyValueStore.KeyValueStoreError>
    /** Changes a record that exists. */
    readonly update: (
      conversationId: ConversationId,
      change: (record: RunRecord) => RunRecord
    ) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
  }
>()("effect-frontend-tools/layers/aidream/RunRecords") {
  static readonly layer = Layer.effect(
    RunRecords,
    Effect.gen(function* () {
      const stored = yield* makeStoredMap("aidream/runs/", RunRecord)

      const isFresh = (record: RunRecord, now: number) => now - record.since < MAX_AGE

      const prune = Effect.fnUntraced(function* (now: number) {
        const newestFirst = [...stored.values()].sort((left, right) => right.since - left.since)
        const surplus = newestFirst.filter((record, index) => index >= CAPACITY || !isFresh(record, now))
        for (const record of surplus) yield* stored.remove(record.conversationId)
      })

      return RunRecords.of({
        get: (conversationId) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            const record = stored.get(conversationId)
            return record !== undefined && isFresh(record, now) ? record : undefined
          }),
        latch: Effect.fnUntraced(function* (record) {
          const since = yield* Clock.currentTimeMillis
          const latched = { ...record, since }
          yield* stored.set(record.conversationId, latched)
          yield* prune(since)
          return latched
        }),
        update: (conversationId, change) =>
          Effect.suspend(() => {
            const record = stored.get(conversationId)
            return record === undefined ? Effect.void : stored.set(conversationId, change(record))
          })
      })
    })
  )
}
