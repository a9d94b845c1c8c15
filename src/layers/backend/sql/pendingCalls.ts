import { Clock, Effect } from "effect"
import { CallId, ConversationId } from "../../../domain/aidream/Ids.ts"
import type { DesktopInstance, PendingCall } from "../../../domain/aidream/PendingCall.ts"
import { toWireName } from "../../../domain/aidream/ToolIdentity.ts"
import { MATRX_LOCAL } from "../Executor.ts"
import { conversation } from "./claimTurn.ts"
import { int, isoOrNull, jsonObject, type Row, text, textOrNull } from "./rows.ts"
import { concealing, type Store, transaction } from "./Store.ts"

const pendingCallOf = (row: Row): PendingCall => ({
  id: text(row.id),
  call_id: CallId.make(text(row.call_id)),
  conversation_id: ConversationId.make(text(row.conversation_id)),
  tool_name: toWireName(text(row.tool_name)),
  user_request_id: textOrNull(row.user_request_id),
  message_id: textOrNull(row.message_id),
  arguments: jsonObject(row.arguments),
  iteration: int(row.iteration),
  created_at: isoOrNull(row.created_at),
  expires_at: isoOrNull(row.expires_at),
  target_instance_id: textOrNull(row.target_instance_id),
  claimed_by_instance_id: textOrNull(row.claimed_by_instance_id),
  claim_expires_at: isoOrNull(row.claim_expires_at),
  execution_authorization: null
})

export const pendingCalls = (store: Store) =>
  Effect.fnUntraced(function* (owner: string, conversationId: ConversationId) {
    yield* conversation(store)(owner, conversationId)
    const rows = yield* store.sql<Row>`SELECT * FROM tool_calls WHERE conversation_id = ${conversationId}
      AND status = 'delegated' AND is_client_delegated = 1 ORDER BY created_at, call_id`
    return rows.map(pendingCallOf)
  }, concealing("pendingCalls"))

export const userPendingCalls = (store: Store) => (owner: string, instanceId: string | undefined) =>
  instanceId === undefined
    ? store.sql<Row>`SELECT * FROM tool_calls WHERE owner = ${owner} AND status = 'delegated'
        AND is_client_delegated = 1 ORDER BY created_at, call_id`.pipe(
        Effect.map((rows) => rows.map(pendingCallOf)),
        concealing("userPendingCalls")
      )
    : transaction(
        store,
        "claimPendingCalls",
        Effect.fnUntraced(function* (now) {
          const { millis, sql } = store
          yield* sql`INSERT INTO desktop_instances ${sql.insert({ owner, id: instanceId, last_seen: now })}
            ON CONFLICT (owner, id) DO UPDATE SET last_seen = ${now}`
          const rows = yield* sql<Row>`UPDATE tool_calls SET claimed_by_instance_id = ${instanceId},
            claimed_at = ${now}, claim_expires_at = ${now + millis.claimLease}, updated_at = ${now}
            WHERE owner = ${owner} AND status = 'delegated' AND is_client_delegated = 1
            AND (executor = ${MATRX_LOCAL} OR executor LIKE ${`${MATRX_LOCAL}.%`})
            AND (target_instance_id IS NULL OR target_instance_id = ${instanceId})
            AND (claimed_by_instance_id IS NULL OR claimed_by_instance_id = ${instanceId} OR claim_expires_at <= ${now})
            RETURNING *`
          return rows
            .slice()
            .sort((left, right) => int(left.created_at) - int(right.created_at))
            .map(pendingCallOf)
        })
      )

/** An instance counts as live for as long as its claims hold after its last poll. */
export const desktopInstances = (store: Store) =>
  Effect.fnUntraced(function* (owner: string) {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* store.sql<Row>`SELECT * FROM desktop_instances WHERE owner = ${owner} ORDER BY id`
    return rows.map(
      (row): DesktopInstance => ({
        id: text(row.id),
        name: text(row.id),
        live: int(row.last_seen) + store.millis.claimLease > now,
        dev: false,
        last_seen: isoOrNull(row.last_seen),
        app_instance_id: null,
        platform: null
      })
    )
  }, concealing("desktopInstances"))
