import { Schema } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"

/** One thing that is wrong with a request. */
export const Problem = Schema.Struct({
  code: Schema.String,
  message: Schema.String,
  /** Where in the body, if it is one place. */
  path: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, Schema.Number])))
})
export type Problem = typeof Problem.Type

/**
 * A request the backend does not carry out. Nothing has changed when it is raised.
 *
 * `code` is one of the contract's (part 2), `details` what stands beside it in the
 * error envelope.
 */
export class Refusal extends Schema.TaggedError<Refusal>("effect-frontend-tools/backend/Refusal")("Refusal", {
  status: Schema.Int,
  code: Schema.String,
  text: Schema.String,
  details: Schema.Record(Schema.String, Schema.Unknown)
}) {
  override get message(): string {
    return `${this.code}: ${this.text}`
  }
}

const refusal = (status: number, code: string, text: string, details: JsonObject = {}) =>
  new Refusal({ status, code, text, details })

export const unauthenticated = () =>
  refusal(401, "unauthenticated", "the request carries neither a valid bearer token nor a fingerprint")

export const agentNotFound = (id: string) => refusal(404, "agent_not_found", `there is no agent "${id}"`)

export const conversationNotFound = () =>
  refusal(404, "conversation_not_found", "there is no such conversation of this caller")

export const userRequestNotFound = () =>
  refusal(404, "user_request_not_found", "there is no such turn in this conversation")

export const runNotFound = () => refusal(404, "run_not_found", "there is no such run of this caller")

export const conversationExists = () =>
  refusal(409, "conversation_exists", "a conversation with this id exists already")

export const runInFlight = () =>
  refusal(409, "run_in_flight", "a run of this conversation is still live", { retryable: true })

export const outstandingCalls = (callIds: ReadonlyArray<string>) =>
  refusal(409, "outstanding_delegated_calls", `${callIds.length} delegated calls wait for an answer`, {
    outstanding_call_ids: callIds,
    retryable: false
  })

export const resumeConflict = (status: string) =>
  refusal(409, "resume_conflict", `the turn is ${status}`, { retryable: true, status })

export const notResumable = (status: string) =>
  refusal(409, "not_resumable", `the turn is ${status}`, { retryable: false, status })

export const toolCallsNotFound = (callIds: ReadonlyArray<string>) =>
  refusal(404, "tool_calls_not_found", "none of the calls is known in this conversation", { not_found: callIds })

export const userInputRequired = () =>
  refusal(422, "user_input_required", "send user_input, or retry: true to run the saved state again")

/** One 422 for everything that is wrong; its code is the first problem's. */
export const invalid = (problems: readonly [Problem, ...ReadonlyArray<Problem>]) =>
  refusal(422, problems[0].code, problems.map(({ message }) => message).join("; "), { problems })

export const tooLarge = (limit: number) => refusal(413, "body_too_large", `a body may have ${limit} bytes at most`)
