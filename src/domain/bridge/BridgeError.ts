/**
 * What the bridge itself refuses or fails with, as typed values (bridge protocol, parts
 * a.3, d and e). An error's `message` is the text of the specification: what goes on the
 * wire or to the model is exactly that.
 */
import { Schema } from "effect"
import { CallErrorCode } from "./ErrorCode.ts"

/** A batch that was well-formed and is refused as a whole. The session goes on. */
export class RegistrationRefused extends Schema.TaggedError<RegistrationRefused>()("RegistrationRefused", {
  code: Schema.Literals(["invalid_tool", "too_many_tools"]),
  message: Schema.String
}) {}

/** The application answered with a failure. */
export class ApplicationError extends Schema.TaggedError<ApplicationError>()("ApplicationError", {
  code: CallErrorCode,
  detail: Schema.String
}) {
  override get message() {
    return `frontend-tools call failed (${this.code}): ${this.detail}`
  }
}

/** The caller gave up, before or while the application worked. */
export class CallAborted extends Schema.TaggedError<CallAborted>()("CallAborted", { rawName: Schema.String }) {
  override get message() {
    return `frontend-tools call to "${this.rawName}" was aborted by the caller`
  }
}

/** No `callResult` arrived within the call's deadline. */
export class DeadlineExceeded extends Schema.TaggedError<DeadlineExceeded>()("DeadlineExceeded", {
  rawName: Schema.String,
  millis: Schema.Finite
}) {
  override get message() {
    return `frontend-tools call to "${this.rawName}" timed out after ${this.millis}ms without a callResult`
  }
}

/** The session ended while the call was in flight. */
export class ConnectionClosed extends Schema.TaggedError<ConnectionClosed>()("ConnectionClosed", {}) {
  override get message() {
    return "frontend-tools connection closed before the call settled"
  }
}

/** The call came when the session of its tool was already gone; nothing was sent. */
export class SessionGone extends Schema.TaggedError<SessionGone>()("SessionGone", { rawName: Schema.String }) {
  override get message() {
    return `frontend-tools call to "${this.rawName}" failed: connection closed`
  }
}

/** The application does not read: what is unsent already fills the buffer, so the call was not sent. */
export class Overloaded extends Schema.TaggedError<Overloaded>()("Overloaded", { rawName: Schema.String }) {
  override get message() {
    return `frontend-tools call to "${this.rawName}" failed: the application does not read its connection`
  }
}

/** The arguments or the result cannot be carried as JSON. */
export class NotJson extends Schema.TaggedError<NotJson>()("NotJson", {
  rawName: Schema.String,
  what: Schema.Literals(["arguments", "result"]),
  detail: Schema.String
}) {
  override get message() {
    return `frontend-tools call to "${this.rawName}" failed: the ${this.what} cannot be carried as JSON: ${this.detail}`
  }
}

/** The caller held no grant for this very call of a write tool; nothing was sent. */
export class NotGranted extends Schema.TaggedError<NotGranted>()("NotGranted", { publicName: Schema.String }) {
  override get message() {
    return `no approval was given for this call of tool "${this.publicName}"`
  }
}

/** A tool of the bridge itself refused what it was asked. The message names the rule. */
export class AdminRefused extends Schema.TaggedError<AdminRefused>()("AdminRefused", { message: Schema.String }) {}

export const CallFailure = Schema.Union([
  ApplicationError,
  CallAborted,
  DeadlineExceeded,
  ConnectionClosed,
  SessionGone,
  Overloaded,
  NotJson,
  NotGranted,
  AdminRefused
])
export type CallFailure = typeof CallFailure.Type

/**
 * A call of a mirrored tool ended without a result. Its message is the reason's,
 * which is what the model reads.
 */
export class CallError extends Schema.TaggedError<CallError>()("CallError", { reason: CallFailure }) {
  override get message() {
    return this.reason.message
  }
}
