import { Clock, Effect } from "effect"
import { ConversationId } from "../../../domain/aidream/Ids.ts"
import type { SweepReport } from "../Ledger.ts"
import { type Row, text } from "./rows.ts"
import { concealing, lapse, lockConversation, type Store, transaction } from "./Store.ts"

/** Ends what nobody will end otherwise (part 10.7). */
export const sweep = (store: Store) =>
  Effect.gen(function* () {
    const { sql } = store
    const now = yield* Clock.currentTimeMillis

    const silent = yield* sql<Row>`SELECT DISTINCT conversation_id FROM user_requests
      WHERE status IN ('pending', 'processing') AND lease_expires_at <= ${now}`
    let lapsedRuns = 0
    for (const row of silent) {
      const id = ConversationId.make(text(row.conversation_id))
      lapsedRuns += yield* transaction(store, "lapse", (time) =>
        Effect.andThen(lockConversation(store, id, time), lapse(store, id, time))
      )
    }

    // Status is checked in the statement that changes it: an answer may arrive at this moment.
    const expired = yield* sql<Row>`UPDATE tool_calls SET status = 'error', success = 0, is_error = 1,
      error_type = 'client_tool_timeout', error_message = 'No client answered this call in time.',
      resolution_source = 'timeout_sweep', completed_at = ${now}, updated_at = ${now}
      WHERE status = 'delegated' AND expires_at <= ${now} RETURNING id`

    const stale = yield* sql<Row>`UPDATE tool_calls SET status = 'error', success = 0, is_error = 1,
      error_type = 'abandoned', error_message = 'The server stopped before this call was finished.',
      resolution_source = 'abandoned', completed_at = ${now}, updated_at = ${now}
      WHERE status = 'running' AND is_client_delegated = 0 AND user_request_id IN
        (SELECT id FROM user_requests WHERE status NOT IN ('pending', 'processing')) RETURNING id`

    return { expiredCalls: expired.length, lapsedRuns, abandonedCalls: stale.length } satisfies SweepReport
  }).pipe(concealing("sweep"))
