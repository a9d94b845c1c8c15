import { Effect } from "effect"
import { CallId, type ConversationId, UserRequestId } from "../../../domain/aidream/Ids.ts"
import type { StoredCall, StoredMessage, Transcript } from "../Ledger.ts"
import { int, json, type Row, text, textOrNull } from "./rows.ts"
import { concealing, type Store } from "./Store.ts"

/** A conversation as its messages and the ledger tell it. */
export const transcript = (store: Store) =>
  Effect.fnUntraced(function* (id: ConversationId) {
    const { sql } = store
    const messages = yield* sql<Row>`SELECT id, position, role, content FROM messages
      WHERE conversation_id = ${id} ORDER BY position`
    const calls = yield* sql<Row>`SELECT call_id, user_request_id, status, output, error_type, error_message
      FROM tool_calls WHERE conversation_id = ${id}`
    return {
      messages: messages.map(messageOf),
      calls: new Map(calls.map((row) => [text(row.call_id), callOf(row)]))
    } satisfies Transcript
  }, concealing("transcript"))

const messageOf = (row: Row): StoredMessage => ({
  id: text(row.id),
  position: int(row.position),
  role: row.role === "assistant" ? "assistant" : "user",
  content: json(row.content)
})

const callOf = (row: Row): StoredCall => ({
  callId: CallId.make(text(row.call_id)),
  userRequestId: UserRequestId.make(text(row.user_request_id)),
  status: statusOf(row.status),
  output: json(row.output),
  errorType: textOrNull(row.error_type) ?? undefined,
  errorMessage: textOrNull(row.error_message) ?? undefined
})

const statusOf = (status: unknown): StoredCall["status"] => {
  switch (status) {
    case "delegated":
    case "completed":
    case "error":
      return status
    default:
      return "running"
  }
}
