/**
 * What happens in a conversation, as its consumer sees it: one sequence over the
 * start of a turn, its suspensions and its resumes.
 */
import type { AidreamError } from "./AidreamError.ts"
import type { Delegation } from "./Delegation.ts"
import type { Malformed } from "./EventDecoder.ts"
import type { CallId, ConversationId, RunId, UserRequestId } from "./Ids.ts"
import type { RunEnd } from "./RunEnd.ts"
import type { StreamEvent, Unrecognised } from "./StreamEvent.ts"
import type { Tier } from "./Tier.ts"
import type { ClientToolResult } from "./ToolResults.ts"

/** How a turn ended, as far as this client can tell. */
export type TurnOutcome =
  /** The model is done. */
  | "complete"
  | "cancelled"
  | "failed"
  /** The transport ended first; the run may be alive on the backend. */
  | "truncated"
  /** Suspended, and nothing here will move it on: answers are owed by others, or delivery is put off. */
  | "paused"
  /** A newer message began another turn. */
  | "superseded"
  /** A resume was refused because the turn is over: reload the saved transcript. */
  | "settled"
  /** Opened, and nothing was pending. */
  | "idle"

/** Why a continuation did not open a stream. */
export type DeferredReason =
  | "outstanding"
  | "conflict"
  | "settled"
  | "refused"
  | "unreachable"
  /** The person cancelled, or sent a newer message. */
  | "superseded"
  /** A call of the same turn still runs here, so the invitation is stale. */
  | "stale"

export type AgentEvent =
  /** A run's stream opened. */
  | {
      readonly _tag: "RunOpened"
      readonly conversationId: ConversationId
      readonly runId: RunId | undefined
      readonly resumed: boolean
    }
  /** One event of the run, as sent. */
  | { readonly _tag: "Stream"; readonly event: StreamEvent }
  /** A line that was no event. The stream goes on. */
  | { readonly _tag: "StreamProblem"; readonly item: Malformed | Unrecognised }
  /** A run's stream ended. `suspended`: the turn goes on after the answers. */
  | { readonly _tag: "RunEnded"; readonly end: RunEnd; readonly suspended: boolean }
  /** A call was delegated to this client. */
  | { readonly _tag: "CallDelegated"; readonly delegation: Delegation }
  /** A call that belongs to another executor; its row stays untouched. */
  | { readonly _tag: "CallLeft"; readonly callId: CallId; readonly toolName: string; readonly owner: string }
  /** A person must allow the call before `expiresAt` (milliseconds of the clock). */
  | { readonly _tag: "ApprovalAsked"; readonly callId: CallId; readonly tier: Tier; readonly expiresAt: number }
  /** The tool runs. */
  | { readonly _tag: "CallStarted"; readonly callId: CallId; readonly tool: string }
  /** The call has an answer; the backend does not have it yet. */
  | { readonly _tag: "CallFinished"; readonly result: ClientToolResult }
  /**
   * The end of a call. `delivered`: the backend has the answer; `kept`: it is
   * offered again later; `dropped`: the backend will never take it.
   */
  | {
      readonly _tag: "CallSettled"
      readonly callId: CallId
      readonly delivery: "delivered" | "kept" | "dropped"
      readonly problem: string | undefined
    }
  /** The backend wants the turn resumed, and this client is doing it. */
  | { readonly _tag: "Resuming"; readonly userRequestId: UserRequestId | undefined }
  /** The resume did not open a stream. Never shown to a person as a failure of the turn. */
  | { readonly _tag: "ResumeDeferred"; readonly reason: DeferredReason; readonly error: AidreamError | undefined }
  /** Always the last event. */
  | { readonly _tag: "TurnEnded"; readonly conversationId: ConversationId; readonly outcome: TurnOutcome }
