/**
 * Every error and code of the bridge protocol as a typed value (parts a.2, a.3, d
 * and e). An error's `message` is the text of the specification: what goes on the
 * wire or to the model is exactly that.
 */
import { Schema } from "effect"

/** Codes an `error` frame carries. */
export const ServerErrorCode = Schema.Literals([
  "auth_failed",
  "duplicate_connection",
  "invalid_message",
  "invalid_tool",
  "too_many_tools"
])
export type ServerErrorCode = typeof ServerErrorCode.Type

/** Codes a failed `callResult` carries. */
export const CallErrorCode = Schema.Literals(["unknown_tool", "disconnected", "denied", "invalid_args", "internal"])
export type CallErrorCode = typeof CallErrorCode.Type

export const BridgeErrorCode = Schema.Literals([...ServerErrorCode.literals, ...CallErrorCode.literals])
export type BridgeErrorCode = typeof BridgeErrorCode.Type

/**
 * A frame that cannot be obeyed. `message` and `code` go back to the sender; it is
 * fatal to the connection unless the fault is inside a tool.
 */
export class FrameRefused extends Schema.TaggedError<FrameRefused>()("FrameRefused", {
  code: ServerErrorCode,
  message: Schema.String,
  /** Where in the frame, from its root; empty for the frame as a whole. */
  path: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  fatal: Schema.Boolean
}) {}

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
