/** How a call of a mirrored tool ended, for a model and for the program around it. */
import { Schema } from "effect"

/**
 * Why a call has no result:
 *
 * - `InvalidArguments`, `InvalidResult`: they do not fit the tool's schema.
 * - `NotAllowed`: the tool writes, and nobody allowed this call. Nothing was run.
 * - `Gone`: the tool is no longer there, or not for this caller. Nothing was run.
 * - `ApplicationFailed`: the application answered with a failure.
 * - `TimedOut`: no answer within the deadline; what the tool did is unknown.
 * - `Disconnected`: the application left while the call ran, or just before.
 * - `Unavailable`: the call could not be sent.
 * - `Unexpected`: a defect.
 */
export const FailureReason = Schema.Literals([
  "InvalidArguments",
  "InvalidResult",
  "NotAllowed",
  "Gone",
  "ApplicationFailed",
  "TimedOut",
  "Disconnected",
  "Unavailable",
  "Unexpected"
])
export type FailureReason = typeof FailureReason.Type

/** What the model reads when a call failed. */
export const MirroredFailure = Schema.Struct({ reason: FailureReason, message: Schema.String })
export type MirroredFailure = typeof MirroredFailure.Type

export type CallOutcome =
  | { readonly _tag: "Success"; readonly value: unknown }
  | { readonly _tag: "Failure"; readonly failure: MirroredFailure }

export const success = (value: unknown): CallOutcome => ({ _tag: "Success", value })

export const failure = (reason: FailureReason, message: string): CallOutcome => ({
  _tag: "Failure",
  failure: { reason, message }
})
