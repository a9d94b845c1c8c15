/** Answering delegated calls: `POST /ai/conversations/{id}/tool_results` (part 2.3). */
import { Schema } from "effect"
import { fallback, maybe } from "./Absent.ts"
import { CallId, ConversationId, UserRequestId } from "./Ids.ts"

/** The answer to one delegated call. */
export const ClientToolResult = Schema.Struct({
  call_id: CallId,
  /** The name as delegated: for audit, never used for matching. */
  tool_name: Schema.String,
  /** Any JSON; `null` on error unless the error has a structure of its own. */
  output: fallback(Schema.Unknown, () => null),
  is_error: fallback(Schema.Boolean, () => false),
  error_message: maybe(Schema.String),
  /** Whole milliseconds the handler ran. */
  duration_ms: maybe(Schema.Int)
})
export type ClientToolResult = typeof ClientToolResult.Type

export const ToolResultsRequest = Schema.Struct({
  results: Schema.NonEmptyArray(ClientToolResult),
  instance_id: maybe(Schema.String)
})
export type ToolResultsRequest = typeof ToolResultsRequest.Type

/**
 * What the backend did with a post. Every posted id is in exactly one list.
 *
 * A 200 that does not decode to this is a failed delivery, not a success (part
 * 7.3), so the flag and the lists are required.
 */
export const ToolResultsResponse = Schema.Struct({
  resolved: Schema.Array(Schema.String),
  already_resolved: Schema.Array(Schema.String),
  not_found: Schema.Array(Schema.String),
  continuation_needed: Schema.Boolean,
  user_request_id: maybe(Schema.String),
  conversation_id: maybe(Schema.String)
})
export type ToolResultsResponse = typeof ToolResultsResponse.Type

/** The turn to resume; a blank id counts as none (part 7.3). */
export const requestToResume = (response: ToolResultsResponse): UserRequestId | undefined => {
  const id = response.user_request_id?.trim()
  return id ? UserRequestId.make(id) : undefined
}

/** Whether the backend now holds an answer for the call. */
export const isDelivered = (response: ToolResultsResponse, callId: CallId): boolean =>
  !response.not_found.includes(callId)

export const conversationOf = (response: ToolResultsResponse): ConversationId | undefined =>
  response.conversation_id ? ConversationId.make(response.conversation_id) : undefined
