/**
 * Every way a request to the backend can fail.
 *
 * A caller sees one `AidreamError` and looks at its `reason` when the difference
 * matters. Reasons carry texts, never the request: its headers hold a credential.
 */
import { Schema } from "effect"
import { ApiError } from "./ApiError.ts"

/** No answer: the network failed, or nothing came in time. The backend may have acted. */
export class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

/** The backend answered with a status outside 2xx. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  error: ApiError,
  /** A deployment drain refused before any work, so a replay is safe. */
  drained: Schema.Boolean,
  /** What `Retry-After` asks for. */
  retryAfterMillis: Schema.UndefinedOr(Schema.Finite)
}) {
  override get message() {
    const { status, code, message } = this.error
    return `${status}${code === undefined ? "" : ` ${code}`}: ${message}`
  }
}

/** A success status with a body that is not what the endpoint promises. */
export class Unacceptable extends Schema.TaggedError<Unacceptable>()("Unacceptable", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

/** The caller is signed in but its token can't be read: nothing was sent. */
export class CredentialUnavailable extends Schema.TaggedError<CredentialUnavailable>()("CredentialUnavailable", {
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

/** Calls of the last turn still wait for an answer, so no new message was sent. */
export class TurnSuspended extends Schema.TaggedError<TurnSuspended>()("TurnSuspended", {
  callIds: Schema.Array(Schema.String)
}) {
  override get message() {
    return `${this.callIds.length} delegated calls of the last turn are unanswered`
  }
}

export const AidreamErrorReason = Schema.Union([
  Unreachable,
  Refused,
  Unacceptable,
  CredentialUnavailable,
  TurnSuspended
])
export type AidreamErrorReason = typeof AidreamErrorReason.Type

export const EndpointName = Schema.Literals([
  "start",
  "continue",
  "resume",
  "tool_results",
  "pending_calls",
  "desktop_instances",
  "cancel"
])
export type EndpointName = typeof EndpointName.Type

/** A request to the backend did not succeed. */
export class AidreamError extends Schema.TaggedError<AidreamError>()("AidreamError", {
  endpoint: EndpointName,
  reason: AidreamErrorReason
}) {
  override get message() {
    return `${this.endpoint}: ${this.reason.message}`
  }

  /** Whether the same request may succeed later: no answer, 408, 429 or 5xx. */
  get isTransient(): boolean {
    switch (this.reason._tag) {
      case "Unreachable":
        return true
      case "Refused": {
        const { status } = this.reason.error
        return status >= 500 || status === 408 || status === 429
      }
      default:
        return false
    }
  }

  /** The HTTP status, when the backend answered with one outside 2xx. */
  get status(): number | undefined {
    return this.reason._tag === "Refused" ? this.reason.error.status : undefined
  }
}
