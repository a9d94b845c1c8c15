/** `tool_event`: what happens to one tool call (part 3.3). */
import { Predicate, Schema } from "effect"
import { isJsonObject, type JsonObject, maybe } from "./Absent.ts"
import { CallId } from "./Ids.ts"

/** `tool_delegated` is the only one that asks this client to run anything. */
export const ToolEventKind = Schema.Literals([
  "tool_started",
  "tool_progress",
  "tool_step",
  "tool_result_preview",
  "tool_completed",
  "tool_error",
  "tool_delegated"
])
export type ToolEventKind = typeof ToolEventKind.Type

export const ToolEvent = Schema.Struct({
  event: ToolEventKind,
  call_id: CallId,
  /** The name as called. */
  tool_name: Schema.NonEmptyString,
  canonical_name: maybe(Schema.String),
  timestamp: maybe(Schema.Unknown),
  message: maybe(Schema.String),
  show_spinner: maybe(Schema.Boolean),
  /** Depends on `event`: arguments, progress, a preview, a result, an error. */
  data: maybe(Schema.Unknown)
})
export type ToolEvent = typeof ToolEvent.Type

const isAnswerable = Schema.is(
  Schema.Struct({ event: ToolEventKind, call_id: CallId, tool_name: Schema.NonEmptyString })
)

const isAbsentOr = (type: "string" | "boolean", value: unknown) => value == null || typeof value === type

// Equal to `Schema.is(ToolEvent)`, at a third of its cost: this runs for every step of every server tool.
const isCurrent = (data: JsonObject): data is JsonObject & ToolEvent =>
  isAbsentOr("string", data.canonical_name) &&
  isAbsentOr("string", data.message) &&
  isAbsentOr("boolean", data.show_spinner) &&
  isAnswerable(data)

/** Keys older servers used for what now has another name or place. */
const legacyKeys = ["callId", "toolName", "wireName", "canonicalName", "args", "arguments"] as const

const first = (...values: ReadonlyArray<unknown>): string | undefined =>
  values.find((value): value is string => Predicate.isString(value) && value !== "")

/**
 * Reads the data of a `tool_event`, in its present or one of its older shapes.
 * `undefined` when no answer could ever be posted for it (no call id, no name) or
 * the sub-event is unknown.
 */
export const readToolEvent = (data: unknown): ToolEvent | undefined => {
  if (!isJsonObject(data)) return undefined
  if (!legacyKeys.some((key) => key in data) && isCurrent(data)) return data
  return normalise(data)
}

const normalise = (data: JsonObject): ToolEvent | undefined => {
  const canonical = first(data.canonical_name, data.canonicalName)
  const args = isJsonObject(data.data) ? undefined : (data.arguments ?? data.args)
  const { callId, toolName, wireName, canonicalName, args: _args, arguments: _arguments, ...kept } = data
  const inner = isJsonObject(data.data) ? innerData(data.data, data.arguments ?? data.args) : data.data
  const event = {
    ...kept,
    call_id: first(data.call_id, callId),
    tool_name: first(data.tool_name, toolName, wireName, canonical),
    canonical_name: canonical ?? null,
    message: Predicate.isString(data.message) ? data.message : null,
    show_spinner: Predicate.isBoolean(data.show_spinner) ? data.show_spinner : null,
    data: args === undefined ? inner : { arguments: args }
  }
  return isCurrent(event) ? event : undefined
}

const innerData = (inner: JsonObject, outer: unknown): JsonObject => {
  const args = inner.arguments ?? inner.args ?? outer
  return args === undefined ? inner : { ...inner, arguments: args }
}
