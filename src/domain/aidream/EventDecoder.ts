/**
 * Bytes of a run's stream to events (part 3.5).
 *
 * Push-based and pure: whoever reads the socket hands over what arrived and gets
 * back the events that became complete, in order. Reads NDJSON and, tolerantly,
 * the line framing of server-sent events.
 */
import { isJsonObject } from "./Absent.ts"
import { readEvent, type StreamEvent, type Unrecognised } from "./StreamEvent.ts"

/** A line that is not JSON, or longer than the decoder keeps. Only the start of it is kept. */
export interface Malformed {
  readonly _tag: "malformed"
  readonly line: string
  readonly problem: string
}

/** What a line of the stream can be. Only `StreamEvent`s mean anything to a turn. */
export type StreamItem = StreamEvent | Unrecognised | Malformed

export interface EventDecoder {
  /** Takes bytes as they arrive, cut anywhere. */
  readonly push: (bytes: Uint8Array) => ReadonlyArray<StreamItem>
  /** The body ended: a last line needs no newline. */
  readonly end: () => ReadonlyArray<StreamItem>
}

export interface EventDecoderOptions {
  /** Longest line kept, in UTF-16 units. A longer one is reported as malformed. Default 64 Mi. */
  readonly maxLineLength?: number | undefined
}

const MAX_LINE_LENGTH = 64 * 1024 * 1024

/** How much of a malformed line a report keeps. */
const REPORTED = 200

const BRACE = 123

const malformed = (line: string, problem: string): Malformed => ({
  _tag: "malformed",
  line: line.length > REPORTED ? `${line.slice(0, REPORTED)}…` : line,
  problem
})

/** Fields of server-sent events that carry no JSON. */
const isSseField = (line: string) =>
  line.startsWith(":") || line.startsWith("event:") || line.startsWith("id:") || line.startsWith("retry:")

/** Where the text literal of a compact line begins: `{"e":"c","t":"…"}`. */
const HOT_TEXT = 13

/**
 * Reads a compact line by parsing its text literal alone, at half the cost of
 * parsing the object. Most lines of a stream are of this form; `undefined` for any
 * other, and for one with more keys.
 */
const readHotLine = (line: string): StreamEvent | undefined => {
  if (!line.startsWith('{"e":"') || !line.startsWith('","t":"', 7) || !line.endsWith('"}')) return undefined
  const kind = line.charAt(6)
  if (kind !== "c" && kind !== "r") return undefined
  try {
    const text: unknown = JSON.parse(line.slice(HOT_TEXT, -1))
    if (typeof text !== "string") return undefined
    return kind === "c"
      ? { _tag: "chunk", data: { text }, seq: undefined }
      : { _tag: "reasoning_chunk", data: { text }, seq: undefined }
  } catch {
    return undefined
  }
}

/** A decoder for one body. */
export const makeEventDecoder = (options?: EventDecoderOptions): EventDecoder => {
  const maxLineLength = options?.maxLineLength ?? MAX_LINE_LENGTH
  const utf8 = new TextDecoder()
  // The unfinished line, in pieces: joining once keeps a long line linear.
  let pieces: Array<string> = []
  let length = 0
  let sseEvent: string | undefined

  const readLine = (raw: string, items: Array<StreamItem>) => {
    if (raw.charCodeAt(0) === BRACE) return readJson(raw, items)
    const line = raw.trim()
    if (line === "") {
      sseEvent = undefined
      return
    }
    if (line.startsWith("data:")) {
      const data = line.slice(5).trim()
      if (data !== "" && data !== "[DONE]") readJson(data, items)
      return
    }
    if (isSseField(line)) {
      if (line.startsWith("event:")) sseEvent = line.slice(6).trim()
      return
    }
    readJson(line, items)
  }

  const readJson = (line: string, items: Array<StreamItem>) => {
    const hot = readHotLine(line)
    if (hot !== undefined) {
      items.push(hot)
      return
    }
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch (cause) {
      items.push(malformed(line.trim(), cause instanceof Error ? cause.message : "not JSON"))
      return
    }
    items.push(readEvent(sseEvent === "tool_event" ? wrapToolEvent(value) : value))
  }

  const finishLine = (last: string, items: Array<StreamItem>) => {
    if (length === 0) {
      readLine(last, items)
      return
    }
    const tooLong = length + last.length > maxLineLength
    pieces.push(last)
    const line = pieces.join("")
    pieces = []
    length = 0
    if (tooLong) items.push(malformed(line, `longer than ${maxLineLength}`))
    else readLine(line, items)
  }

  const keep = (piece: string) => {
    // Past the bound only the start is kept, for the report.
    if (length <= maxLineLength) pieces.push(length + piece.length > maxLineLength ? piece.slice(0, REPORTED) : piece)
    length += piece.length
  }

  const pushText = (text: string, items: Array<StreamItem>) => {
    let start = 0
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      finishLine(text.slice(start, end), items)
      start = end + 1
    }
    if (start < text.length) keep(text.slice(start))
  }

  return {
    push: (bytes) => {
      const items: Array<StreamItem> = []
      pushText(utf8.decode(bytes, { stream: true }), items)
      return items
    },
    end: () => {
      const items: Array<StreamItem> = []
      pushText(utf8.decode(), items)
      if (length > 0) finishLine("", items)
      return items
    }
  }
}

/** The documented server-sent form puts the tool event itself in `data:`. */
const wrapToolEvent = (value: unknown): unknown =>
  isJsonObject(value) && typeof value.event === "string" && value.event.startsWith("tool_") && "call_id" in value
    ? { event: "tool_event", data: value }
    : value
