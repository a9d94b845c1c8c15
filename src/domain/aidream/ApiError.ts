/**
 * Refusals of the backend.
 *
 * Deployments wrap the same refusal in eight shapes (E1 to E8, part 2.0). Readers
 * go through `readApiError`, which finds the machine-readable code in all of them;
 * our own backend writes one shape, `apiErrorBody`, that every older reader knows.
 */
import { Predicate, Result, Schema } from "effect"
import { isJsonObject, type JsonObject } from "./Absent.ts"

/** Every code of the contract. A backend may send others. */
export const knownCodes = [
  "agent_definition_invalid",
  "agent_model_missing",
  "client_capability_resolution_failed",
  "conversation_exists",
  "conversation_not_found",
  "invalid_uuid",
  "live_stream_unavailable",
  "not_resumable",
  "outstanding_delegated_calls",
  "resume_conflict",
  "run_in_flight",
  "run_in_progress",
  "tool_calls_not_found",
  "tool_merge_error",
  "tool_not_found",
  "user_input_required",
  "user_request_not_found"
] as const

/** A code of the contract, or any other string a deployment invents. */
export type ApiErrorCode = (typeof knownCodes)[number] | (string & {})

/** What a refusal says, whatever its wrapper was. */
export const ApiError = Schema.Struct({
  /** The HTTP status. */
  status: Schema.Int,
  code: Schema.UndefinedOr(Schema.String),
  /** For developers, without the code prefix. */
  message: Schema.String,
  /** For the person in front of the application. */
  userMessage: Schema.UndefinedOr(Schema.String),
  /** What the body says about trying again; only `resume_conflict` defaults to true. */
  retryable: Schema.Boolean,
  /** The turn's state, on a refused resume. */
  runStatus: Schema.UndefinedOr(Schema.String),
  /** Calls that still wait for an answer, on `outstanding_delegated_calls`. */
  outstandingCallIds: Schema.Array(Schema.String),
  /** The rest of `details`, as sent. */
  details: Schema.Record(Schema.String, Schema.Unknown)
})
export type ApiError = typeof ApiError.Type

/** Words that say that something went wrong, not what. */
const genericWords: ReadonlySet<string> = new Set([
  "conflict",
  "not_found",
  "bad_request",
  "http_error",
  "error",
  "internal",
  "internal_error",
  "unprocessable_entity"
])

const codePattern = /^[a-z][a-z0-9_]*$/

const asCode = (value: unknown): string | undefined => {
  if (!Predicate.isString(value)) return undefined
  const code = value.trim()
  return code === "" || genericWords.has(code) ? undefined : code
}

const prefixCode = (value: unknown): string | undefined => {
  if (!Predicate.isString(value)) return undefined
  const colon = value.indexOf(":")
  const prefix = colon < 0 ? "" : value.slice(0, colon).trim()
  return codePattern.test(prefix) ? asCode(prefix) : undefined
}

const firstOf = <A>(read: (value: unknown) => A | undefined, values: ReadonlyArray<unknown>): A | undefined => {
  for (const value of values) {
    const found = read(value)
    if (found !== undefined) return found
  }
  return undefined
}

const object = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const text = (value: unknown) => (Predicate.isString(value) && value.trim() !== "" ? value.trim() : undefined)
const bool = (value: unknown) => (Predicate.isBoolean(value) ? value : undefined)
const strings = (value: unknown) => (Array.isArray(value) ? value.filter(Predicate.isString) : undefined)

/** The code a JSON body carries, by the order of part 2.0. */
const codeOf = (body: JsonObject): string | undefined => {
  const detail = object(body.detail)
  const error = object(body.error)
  return (
    firstOf(asCode, [object(body.details).code, detail.code, body.error, body.code, error.code, error.type]) ??
    firstOf(prefixCode, [body.message, body.detail, detail.message])
  )
}

/** The only known code a non-JSON body names, if there is exactly one. */
const codeInText = (body: string): string | undefined => {
  const found = knownCodes.filter((code) => body.includes(code))
  return found.length === 1 ? found[0] : undefined
}

/** One line out of a 422 list of field problems (E6). */
const validationMessage = (detail: unknown): string | undefined => {
  if (!Array.isArray(detail)) return undefined
  const lines = detail.map((issue) => {
    const { loc, msg } = object(issue)
    const path = Array.isArray(loc) ? loc.join(".") : ""
    return [path, text(msg) ?? "invalid"].filter((part) => part !== "").join(": ")
  })
  return lines.length === 0 ? undefined : lines.join("; ")
}

const withoutPrefix = (message: string, code: string | undefined): string =>
  code !== undefined && message.startsWith(`${code}:`) ? message.slice(code.length + 1).trim() : message

/** Longest part of a gateway's page that is worth keeping. */
const MAX_TEXT = 500

/** Reads the body of any answer outside 2xx. */
export const readApiError = (status: number, body: string): ApiError => {
  const parsed = Result.getOrElse(
    Result.try((): unknown => JSON.parse(body)),
    () => undefined
  )
  if (!isJsonObject(parsed)) {
    const code = codeInText(body)
    return {
      status,
      code,
      message: body.trim().slice(0, MAX_TEXT) || `HTTP ${status}`,
      userMessage: undefined,
      retryable: code === "resume_conflict",
      runStatus: undefined,
      outstandingCallIds: [],
      details: {}
    }
  }
  const code = codeOf(parsed)
  const details = object(parsed.details)
  const detail = object(parsed.detail)
  const error = object(parsed.error)
  const side = (key: string) => [details[key], detail[key], parsed[key]]
  const message =
    firstOf(text, [parsed.message, parsed.detail, detail.message, error.message]) ??
    validationMessage(parsed.detail) ??
    code ??
    `HTTP ${status}`
  return {
    status,
    code,
    message: withoutPrefix(message, code),
    userMessage: firstOf(text, [
      parsed.user_message,
      details.user_message,
      detail.user_message,
      error.user_visible_message
    ]),
    retryable: firstOf(bool, side("retryable")) ?? code === "resume_conflict",
    runStatus: firstOf(text, side("status")),
    outstandingCallIds: firstOf(strings, side("outstanding_call_ids")) ?? [],
    details: isJsonObject(parsed.details) ? details : detail
  }
}

/** The wrapper our backend writes (E1): code in `error`, in `details.code` and before the message. */
export const ApiErrorBody = Schema.Struct({
  error: Schema.String,
  message: Schema.String,
  user_message: Schema.optionalKey(Schema.String),
  details: Schema.StructWithRest(Schema.Struct({ code: Schema.String }), [
    Schema.Record(Schema.String, Schema.Unknown)
  ]),
  request_id: Schema.optionalKey(Schema.String)
})
export type ApiErrorBody = typeof ApiErrorBody.Type

/** Builds an E1 body. */
export const apiErrorBody = (
  code: ApiErrorCode,
  message: string,
  options?: {
    readonly userMessage?: string | undefined
    readonly details?: JsonObject | undefined
    readonly requestId?: string | undefined
  }
): ApiErrorBody => ({
  error: code,
  message: `${code}: ${message}`,
  ...(options?.userMessage === undefined ? {} : { user_message: options.userMessage }),
  details: { ...options?.details, code },
  ...(options?.requestId === undefined ? {} : { request_id: options.requestId })
})

/** What to do with a refused resume (parts 2.4 and 8.4). */
export type ResumeRefusal =
  /** A run is live: try again, a bounded number of times. */
  | "conflict"
  /** Calls are unanswered, or the code is unknown: stay paused, a later answer re-triggers. */
  | "outstanding"
  /** The turn is over: settle and reload the saved transcript. */
  | "settled"
  /** Nothing a later attempt could change. */
  | "terminal"

/** Classifies the refusal of a resume. `undefined`: not a refusal but a failed attempt (5xx, 408, 429). */
export const resumeRefusal = (error: ApiError): ResumeRefusal | undefined => {
  if (error.status === 409) {
    switch (error.code) {
      case "resume_conflict":
        return "conflict"
      case "not_resumable":
        return "settled"
      default:
        return "outstanding"
    }
  }
  return error.status >= 500 || error.status === 408 || error.status === 429 ? undefined : "terminal"
}
