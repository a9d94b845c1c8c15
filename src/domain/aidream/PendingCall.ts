/** Delegated calls that still wait for an answer (parts 2.5 and 2.6). */
import { Schema } from "effect"
import { fallback, JsonObject, maybe } from "./Absent.ts"
import { CallId, ConversationId } from "./Ids.ts"

export const PendingCall = Schema.Struct({
  /** The ledger row. */
  id: Schema.String,
  call_id: CallId,
  conversation_id: ConversationId,
  tool_name: Schema.String,
  user_request_id: maybe(Schema.String),
  message_id: maybe(Schema.String),
  arguments: fallback(JsonObject, (): JsonObject => ({})),
  iteration: fallback(Schema.Int, () => 0),
  /** ISO-8601. */
  created_at: maybe(Schema.String),
  /** ISO-8601. */
  expires_at: maybe(Schema.String),
  target_instance_id: maybe(Schema.String),
  claimed_by_instance_id: maybe(Schema.String),
  claim_expires_at: maybe(Schema.String),
  /** An approval record of the backend's; passed through unchanged (part 6.6). */
  execution_authorization: maybe(JsonObject)
})
export type PendingCall = typeof PendingCall.Type

/** The body of a pending-calls list: an array, or the wrapped form some deployments send. */
export const PendingCalls = Schema.Union([
  Schema.Array(PendingCall),
  Schema.Struct({ pending_calls: Schema.Array(PendingCall) })
])

/** The calls of either form of the list. */
export const pendingCallsOf = (body: typeof PendingCalls.Type): ReadonlyArray<PendingCall> =>
  "pending_calls" in body ? body.pending_calls : body

/** One entry of `GET /desktop-instances`. `id` is the value for `target_instance_id`. */
export const DesktopInstance = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  live: Schema.Boolean,
  dev: fallback(Schema.Boolean, () => false),
  last_seen: maybe(Schema.String),
  app_instance_id: maybe(Schema.String),
  platform: maybe(Schema.String)
})
export type DesktopInstance = typeof DesktopInstance.Type

/** The answer to `POST /ai/cancel/{request_id}`. */
export const CancelResponse = Schema.Struct({ status: Schema.String })
export type CancelResponse = typeof CancelResponse.Type
