/**
 * Events of a run's stream (part 3).
 *
 * A known event decodes to `{ _tag, data, seq }`: `_tag` is its wire name, `data`
 * the object it came with. The two hot types also have a compact wire form, which
 * decodes to the same value. Everything else is `other`, with its name and data
 * unchanged: nothing a newer backend sends is dropped or fatal.
 */
import { Predicate, Schema } from "effect"
import { isJsonObject, JsonObject, maybe } from "./Absent.ts"
import { readToolEvent, ToolEvent } from "./ToolEvent.ts"

export const TextData = Schema.Struct({ text: Schema.String })
export const ReasoningData = Schema.Struct({ state: Schema.String })
export const PhaseData = Schema.Struct({ phase: Schema.String })
export const InitData = Schema.Struct({
  operation: Schema.String,
  operation_id: Schema.String,
  parent_operation_id: maybe(Schema.String),
  metadata: maybe(JsonObject)
})
export const CompletionData = Schema.Struct({
  operation: Schema.String,
  operation_id: Schema.String,
  status: Schema.String,
  result: maybe(Schema.Unknown)
})
export const InfoData = Schema.Struct({
  code: Schema.String,
  system_message: Schema.String,
  user_message: maybe(Schema.String),
  metadata: maybe(JsonObject)
})
export const WarningData = Schema.Struct({
  code: Schema.String,
  system_message: Schema.String,
  user_message: maybe(Schema.String),
  level: maybe(Schema.String),
  recoverable: maybe(Schema.Boolean),
  metadata: maybe(JsonObject)
})
export const ErrorData = Schema.Struct({
  error_type: Schema.String,
  message: Schema.String,
  user_message: maybe(Schema.String),
  code: maybe(Schema.String),
  details: maybe(Schema.Unknown)
})
export const EndData = Schema.Struct({ reason: maybe(Schema.String) })
export const TypedData = Schema.Struct({ type: Schema.String })
export const ResourceChangedData = Schema.Struct({
  kind: Schema.String,
  action: Schema.String,
  resource_id: Schema.String,
  sandbox_id: maybe(Schema.String),
  user_id: maybe(Schema.String),
  metadata: maybe(JsonObject)
})
export const RecordReservedData = Schema.Struct({
  db_project: maybe(Schema.String),
  table: Schema.String,
  record_id: Schema.String,
  status: maybe(Schema.String),
  parent_refs: maybe(JsonObject),
  metadata: maybe(JsonObject)
})
export const RecordUpdateData = Schema.Struct({
  db_project: maybe(Schema.String),
  table: Schema.String,
  record_id: Schema.String,
  status: Schema.String,
  metadata: maybe(JsonObject)
})
export const HeartbeatData = Schema.Struct({
  timestamp: maybe(Schema.Unknown),
  seq: maybe(Schema.Finite),
  late_by_seconds: maybe(Schema.Finite)
})
export const ProviderRetryData = Schema.Struct({
  state: Schema.String,
  provider: maybe(Schema.String),
  error_type: maybe(Schema.String),
  /** ISO-8601, or seconds since the epoch. */
  retry_at: maybe(Schema.Union([Schema.String, Schema.Finite])),
  retry_delay: maybe(Schema.Finite),
  discard_partial_output: maybe(Schema.Boolean)
})

/** The schema of each known event's data. */
export const eventData = {
  chunk: TextData,
  reasoning_chunk: TextData,
  reasoning: ReasoningData,
  phase: PhaseData,
  init: InitData,
  completion: CompletionData,
  info: InfoData,
  warning: WarningData,
  error: ErrorData,
  end: EndData,
  data: TypedData,
  tool_event: ToolEvent,
  resource_changed: ResourceChangedData,
  record_reserved: RecordReservedData,
  record_update: RecordUpdateData,
  heartbeat: HeartbeatData,
  provider_retry: ProviderRetryData
} as const

type EventData = typeof eventData
export type EventName = keyof EventData

/** The delivery cursor of a line, if the backend numbers its lines. */
export type Seq = number | undefined

/** A known event of one name. `data` may carry more keys than its type names. */
export interface KnownEventOf<Name extends EventName> {
  readonly _tag: Name
  readonly data: EventData[Name]["Type"]
  readonly seq: Seq
}

export type KnownEvent = { readonly [Name in EventName]: KnownEventOf<Name> }[EventName]

/** An event this contract does not act on, or one whose data is not what its name promises. */
export interface OtherEvent {
  readonly _tag: "other"
  readonly event: string
  readonly data: unknown
  readonly seq: Seq
}

export type StreamEvent = KnownEvent | OtherEvent

/** A line that is JSON but no event. */
export interface Unrecognised {
  readonly _tag: "unrecognised"
  readonly value: unknown
}

/** The one event whose name has been seen in both cases. */
const RESOURCE_CHANGED = "resource_changed"

type Read = (data: unknown, seq: Seq) => KnownEvent | undefined

// The schema only checks: the parsed object itself is kept, unknown keys and all.
const checked = <Name extends Exclude<EventName, "tool_event">>(
  name: Name
): readonly [Name, (data: unknown, seq: Seq) => KnownEventOf<Name> | undefined] => {
  const is: (data: unknown) => data is EventData[Name]["Type"] = Schema.is(eventData[name])
  return [name, (data, seq) => (is(data) ? known(name, data, seq) : undefined)]
}

const known = <Name extends EventName>(name: Name, data: EventData[Name]["Type"], seq: Seq): KnownEventOf<Name> => ({
  _tag: name,
  data,
  seq
})

const readers: ReadonlyMap<string, Read> = new Map<string, Read>([
  checked("chunk"),
  checked("reasoning_chunk"),
  checked("reasoning"),
  checked("phase"),
  checked("init"),
  checked("completion"),
  checked("info"),
  checked("warning"),
  checked("error"),
  checked("end"),
  checked("data"),
  checked("resource_changed"),
  checked("record_reserved"),
  checked("record_update"),
  checked("heartbeat"),
  checked("provider_retry"),
  [
    "tool_event",
    (data, seq) => {
      const event = readToolEvent(data)
      return event === undefined ? undefined : known("tool_event", event, seq)
    }
  ]
])

const seqOf = (value: unknown): Seq =>
  typeof value === "number" && value > 0 && Number.isInteger(value) ? value : undefined

/** Whether an object is a tool event that lost its envelope (part 3.3). */
const isBareToolEvent = (name: string, envelope: JsonObject): boolean =>
  name.startsWith("tool_") &&
  name !== "tool_event" &&
  (Predicate.isString(envelope.call_id) || Predicate.isString(envelope.callId))

/** Reads one parsed line. */
export const readEvent = (value: unknown): StreamEvent | Unrecognised => {
  if (!isJsonObject(value)) return { _tag: "unrecognised", value }
  const { e, t } = value
  if (typeof t === "string") {
    if (e === "c") return known("chunk", { text: t }, seqOf(value.stream_seq))
    if (e === "r") return known("reasoning_chunk", { text: t }, seqOf(value.stream_seq))
  }
  const name = value.event ?? value.eventName
  if (typeof name !== "string") return { _tag: "unrecognised", value }
  return isBareToolEvent(name, value)
    ? readNamed("tool_event", value, seqOf(value.stream_seq))
    : readNamed(name, value.data, seqOf(value.stream_seq))
}

const readNamed = (name: string, data: unknown, seq: Seq): StreamEvent => {
  const read = readers.get(name) ?? readers.get(name.toLowerCase() === RESOURCE_CHANGED ? RESOURCE_CHANGED : "")
  // A bare `{"event":"end"}` or heartbeat has nothing to say beyond its name.
  return read?.(data ?? {}, seq) ?? { _tag: "other", event: name, data, seq }
}

/** The wire object of an event. `compact` picks the short form of the two hot types. */
export const writeEvent = (event: StreamEvent, options?: { readonly compact?: boolean | undefined }): JsonObject => {
  const seq = event.seq === undefined ? undefined : { stream_seq: event.seq }
  if (options?.compact === true) {
    if (event._tag === "chunk") return { e: "c", t: event.data.text, ...seq }
    if (event._tag === "reasoning_chunk") return { e: "r", t: event.data.text, ...seq }
  }
  return { event: event._tag === "other" ? event.event : event._tag, data: event.data, ...seq }
}

/** One line of the stream, with its end. */
export const encodeEvent = (event: StreamEvent, options?: { readonly compact?: boolean | undefined }): string =>
  `${JSON.stringify(writeEvent(event, options))}\n`
