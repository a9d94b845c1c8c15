import { Clock, Duration, Effect, Predicate, Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { CallId, ConversationId, UserRequestId } from "../../../domain/aidream/Ids.ts"
import { LedgerFailure, type LedgerTimes, type RunKey, RunLost, type Step, TurnStatus } from "../Ledger.ts"
import { conversationNotFound } from "../Refusal.ts"
import { type Row, text } from "./rows.ts"

/** What the parts of the SQL ledger share. */
export interface Store {
  readonly sql: SqlClient.SqlClient
  readonly millis: { readonly [Name in keyof LedgerTimes]: number }
}

export const makeStore = (sql: SqlClient.SqlClient, times: LedgerTimes): Store => ({
  sql,
  millis: {
    runLease: Duration.toMillis(times.runLease),
    windDownLease: Duration.toMillis(times.windDownLease),
    claimLease: Duration.toMillis(times.claimLease),
    delegationLifetime: Duration.toMillis(times.delegationLifetime)
  }
})

/** Runs one operation in one transaction and hides how the database failed. */
export const transaction = <A, E>(
  { sql }: Store,
  operation: string,
  body: (now: number) => Effect.Effect<A, E | SqlError.SqlError>
): Effect.Effect<A, Exclude<E, SqlError.SqlError> | LedgerFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => sql.withTransaction(body(now))).pipe(concealing(operation))

/** Hides how the database failed. */
export const concealing =
  (operation: string) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Exclude<E, SqlError.SqlError> | LedgerFailure> =>
    Effect.catch(
      effect,
      (error): Effect.Effect<never, Exclude<E, SqlError.SqlError> | LedgerFailure> =>
        isOther(error) ? Effect.fail(error) : Effect.fail(new LedgerFailure({ operation, cause: error }))
    )

const isOther = <E>(error: E): error is Exclude<E, SqlError.SqlError> => !Predicate.isTagged(error, "SqlError")

/**
 * Takes the conversation's row for the rest of the transaction. Every writing
 * transaction starts so: whatever touches one conversation happens one after the other,
 * and no two transactions can wait for each other.
 */
export const lockConversation = ({ sql }: Store, id: ConversationId, now: number) =>
  sql<Row>`UPDATE conversations SET updated_at = ${now} WHERE id = ${id} RETURNING *`

/** The same for a conversation that must be the owner's. */
export const lockOwned = Effect.fnUntraced(function* (store: Store, owner: string, id: ConversationId, now: number) {
  const [row] = yield* store.sql<Row>`UPDATE conversations SET updated_at = ${now}
    WHERE id = ${id} AND owner = ${owner} RETURNING *`
  return row ?? (yield* conversationNotFound())
})

/** Pauses the conversation's turns whose run fell silent. */
export const lapse = Effect.fnUntraced(function* (store: Store, id: ConversationId, now: number) {
  const lapsed = yield* store.sql<Row>`UPDATE user_requests
    SET status = 'paused', lease_expires_at = NULL, updated_at = ${now}
    WHERE conversation_id = ${id} AND status IN ('pending', 'processing') AND lease_expires_at <= ${now}
    RETURNING id`
  for (const row of lapsed) yield* abandonRunning(store, text(row.id), now)
  return lapsed.length
})

/** Ends calls nobody works on any more. What they did is unknown, so nothing runs them again by itself. */
export const abandonRunning = ({ sql }: Store, userRequestId: string, now: number) =>
  sql<Row>`UPDATE tool_calls SET status = 'error', success = 0, is_error = 1, error_type = 'abandoned',
    error_message = 'The server stopped before this call was finished. Whether it had an effect is unknown.',
    resolution_source = 'abandoned', completed_at = ${now}, updated_at = ${now}
    WHERE user_request_id = ${userRequestId} AND status = 'running' RETURNING id`

const statusOf = Schema.decodeUnknownEffect(TurnStatus)

/** Fails unless the turn is this run's; prolongs its lease to `until`. */
export const fence = Effect.fnUntraced(function* ({ sql }: Store, run: RunKey, now: number, until: number) {
  const [mine] = yield* sql<Row>`UPDATE user_requests SET updated_at = ${now}, lease_expires_at = ${until}
    WHERE id = ${run.userRequestId} AND generation = ${run.generation} AND status = 'processing' RETURNING id`
  if (mine !== undefined) return
  const [row] = yield* sql<Row>`SELECT status FROM user_requests WHERE id = ${run.userRequestId}`
  return yield* new RunLost({ status: yield* Effect.orDie(statusOf(row?.status ?? "cancelled")) })
})

/** Enters a message after the last one. */
export const addMessage = Effect.fnUntraced(function* (
  { sql }: Store,
  message: {
    readonly id: string
    readonly conversationId: ConversationId
    readonly userRequestId: UserRequestId
    readonly role: "user" | "assistant"
    readonly content: unknown
  },
  now: number
) {
  const [row] = yield* sql<Row>`UPDATE conversations SET next_position = next_position + 1
    WHERE id = ${message.conversationId} RETURNING next_position - 1 AS position`
  yield* sql`INSERT INTO messages ${sql.insert({
    id: message.id,
    conversation_id: message.conversationId,
    user_request_id: message.userRequestId,
    position: row?.position,
    role: message.role,
    content: JSON.stringify(message.content),
    created_at: now
  })}`
})

/** Enters an answer of the model and its calls. The run must have been checked before. */
export const addStep = Effect.fnUntraced(function* (store: Store, owner: string, run: RunKey, step: Step, now: number) {
  const { sql } = store
  yield* addMessage(
    store,
    {
      id: step.messageId,
      conversationId: run.conversationId,
      userRequestId: run.userRequestId,
      role: "assistant",
      content: step.message
    },
    now
  )
  yield* sql`UPDATE user_requests SET iteration = ${step.iteration},
    input_tokens = input_tokens + ${step.usage.inputTokens},
    output_tokens = output_tokens + ${step.usage.outputTokens} WHERE id = ${run.userRequestId}`
  for (const call of step.calls) {
    yield* sql`INSERT INTO tool_calls ${sql.insert({
      id: call.id,
      call_id: call.callId,
      conversation_id: run.conversationId,
      user_request_id: run.userRequestId,
      message_id: step.messageId,
      owner,
      tool_name: call.toolName,
      tool_name_as_called: call.calledName,
      arguments: JSON.stringify(call.arguments),
      iteration: step.iteration,
      generation: run.generation,
      status: "running",
      is_client_delegated: 0,
      executor: call.executor ?? null,
      is_error: 0,
      target_instance_id: call.targetInstanceId ?? null,
      runtime_execution_id: run.runId,
      metadata: "{}",
      started_at: now,
      created_at: now,
      updated_at: now
    })}`
  }
})

/** Calls of a turn, or of a whole conversation, that wait for a client. */
export const outstanding = Effect.fnUntraced(function* (
  { sql }: Store,
  where: { readonly conversationId: ConversationId; readonly userRequestId?: UserRequestId | undefined }
) {
  const rows = yield* where.userRequestId === undefined
    ? sql<Row>`SELECT call_id FROM tool_calls WHERE conversation_id = ${where.conversationId}
        AND status = 'delegated' ORDER BY created_at, call_id`
    : sql<Row>`SELECT call_id FROM tool_calls WHERE user_request_id = ${where.userRequestId}
        AND status = 'delegated' ORDER BY created_at, call_id`
  return rows.map((row) => text(row.call_id))
})

export const newId = Effect.sync(() => globalThis.crypto.randomUUID())

/** Names calls in a statement. */
export const callIds = ({ sql }: Store, ids: ReadonlyArray<CallId>) => sql.in(ids)
