/**
 * A call this client was asked to run.
 *
 * It arrives on a run's stream (live) or in the list of pending calls (cold). Both
 * become the same value, so nothing downstream can treat them differently by
 * accident.
 */
import { Schema } from "effect"
import { isJsonObject, JsonObject } from "./Absent.ts"
import { CallId, ConversationId, UserRequestId } from "./Ids.ts"
import type { PendingCall } from "./PendingCall.ts"
import type { ToolEvent } from "./ToolEvent.ts"

export const Delegation = Schema.Struct({
  conversationId: ConversationId,
  callId: CallId,
  /** As delegated: what the answer is posted under. */
  toolName: Schema.String,
  canonicalName: Schema.optional(Schema.String),
  /** Not yet checked: only the handler knows their schema. `{}` when absent. */
  arguments: Schema.Unknown,
  userRequestId: Schema.optional(UserRequestId),
  targetInstanceId: Schema.optional(Schema.String),
  /** When present, nothing runs without an approval of exactly this record (part 6.6). */
  executionAuthorization: Schema.optional(JsonObject),
  source: Schema.Literals(["live", "cold"])
})
export type Delegation = typeof Delegation.Type

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined)
const object = (value: unknown) => (isJsonObject(value) ? value : undefined)

/** The delegation a tool event makes. Every other tool event is display only: `undefined`. */
export const delegationOfEvent = (
  event: ToolEvent,
  run: { readonly conversationId: ConversationId; readonly userRequestId: UserRequestId | undefined }
): Delegation | undefined => {
  if (event.event !== "tool_delegated") return undefined
  const data = object(event.data)
  return {
    conversationId: run.conversationId,
    callId: event.call_id,
    toolName: event.tool_name,
    canonicalName: text(event.canonical_name),
    arguments: data?.arguments ?? {},
    userRequestId: run.userRequestId,
    targetInstanceId: text(data?.target_instance_id),
    executionAuthorization: object(data?.execution_authorization),
    source: "live"
  }
}

/** The delegation a pending call stands for. */
export const delegationOfPending = (call: PendingCall): Delegation => {
  const request = text(call.user_request_id)
  return {
    conversationId: call.conversation_id,
    callId: call.call_id,
    toolName: call.tool_name,
    canonicalName: undefined,
    arguments: call.arguments,
    userRequestId: request === undefined ? undefined : UserRequestId.make(request),
    targetInstanceId: text(call.target_instance_id),
    executionAuthorization: object(call.execution_authorization),
    source: "cold"
  }
}
