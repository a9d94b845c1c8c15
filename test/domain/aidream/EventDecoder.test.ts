import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { makeEventDecoder, type StreamItem } from "../../../src/domain/aidream/EventDecoder.ts"
import { encodeEvent, type StreamEvent } from "../../../src/domain/aidream/StreamEvent.ts"

const utf8 = new TextEncoder()

const decodeCut = (bytes: Uint8Array, cuts: ReadonlyArray<number>): ReadonlyArray<StreamItem> => {
  const decoder = makeEventDecoder()
  const items: Array<StreamItem> = []
  let start = 0
  for (const cut of [...cuts, bytes.length]) {
    items.push(...decoder.push(bytes.subarray(start, cut)))
    start = cut
  }
  items.push(...decoder.end())
  return items
}

const decode = (text: string) => decodeCut(utf8.encode(text), [])

const mixed = [
  `{"event":"phase","data":{"phase":"connected"}}`,
  `{"e":"c","t":"Grüße, 世界 🦊"}`,
  `{"e":"r","t":"hm","stream_seq":4}`,
  ``,
  `: a comment`,
  `event: tool_event`,
  `data: {"event":"tool_delegated","call_id":"call_1","tool_name":"forms__fill_form","data":{"arguments":{"q":"naïve"}}}`,
  ``,
  `data: {"event":"heartbeat"}\r`,
  `not json é`,
  `[1]`,
  `{"event":"novel","data":{"x":1},"stream_seq":9}`,
  `data: [DONE]`,
  `{"event":"end","data":{"reason":"complete"}}`
].join("\n")

describe("EventDecoder", () => {
  it("gives the same events wherever the stream is cut", () => {
    const bytes = utf8.encode(mixed)
    const whole = decodeCut(bytes, [])
    assert.deepStrictEqual(
      whole.map((item) => item._tag),
      ["phase", "chunk", "reasoning_chunk", "tool_event", "heartbeat", "malformed", "unrecognised", "other", "end"]
    )
    for (let cut = 0; cut <= bytes.length; cut++) assert.deepStrictEqual(decodeCut(bytes, [cut]), whole)
    assert.deepStrictEqual(
      decodeCut(
        bytes,
        Array.from(bytes, (_, index) => index)
      ),
      whole
    )
  })

  it("reads text split inside a character", () => {
    const [event] = decodeCut(utf8.encode(`{"e":"c","t":"🦊"}\n`), [15, 16])
    assert.deepStrictEqual(event, { _tag: "chunk", data: { text: "🦊" }, seq: undefined })
  })

  it("needs no newline after the last line", () => {
    assert.deepStrictEqual(decode(`{"event":"end"}`), [{ _tag: "end", data: {}, seq: undefined }])
  })

  it("survives malformed lines and reports the start of them", () => {
    const [bad, good] = decode(`{"event":"pha${"x".repeat(1000)}\n{"e":"c","t":"on"}\n`)
    assert.strictEqual(bad?._tag, "malformed")
    if (bad?._tag === "malformed") assert.isBelow(bad.line.length, 250)
    assert.strictEqual(good?._tag, "chunk")
  })

  it("treats CRLF, surrounding space and blank lines as framing", () => {
    assert.deepStrictEqual(
      decode(`\r\n  {"e":"c","t":"a"}  \r\n\r\n{"e":"c","t":"b"}\r\n`).map((item) => item._tag),
      ["chunk", "chunk"]
    )
  })

  it("wraps the documented server-sent tool event only under its event name", () => {
    const bare = `data: {"event":"tool_custom","call_id":"c","tool_name":"t"}`
    assert.strictEqual(decode(`event: tool_event\n${bare}\n`)[0]?._tag, "other")
    const known = `data: {"event":"tool_started","call_id":"c","tool_name":"t"}`
    assert.strictEqual(decode(`event: tool_event\n${known}\n`)[0]?._tag, "tool_event")
    const enveloped = `data: {"event":"heartbeat","data":{"seq":1}}`
    assert.strictEqual(decode(`event: tool_event\n${enveloped}\n`)[0]?._tag, "heartbeat")
  })

  it("forgets the event name at the next blank line", () => {
    const named = `{"event":"tool_x","call_id":1}`
    assert.deepStrictEqual(decode(`event: tool_event\ndata: ${named}\n\ndata: ${named}\n`), [
      { _tag: "other", event: "tool_event", data: JSON.parse(named), seq: undefined },
      { _tag: "other", event: "tool_x", data: undefined, seq: undefined }
    ])
  })

  it("reads compact lines with escapes, more keys or other spacing like any JSON", () => {
    const texts = [
      `{"e":"c","t":"a\\n\\u00e9\\"}"}`,
      `{"e":"c","t":"a","x":"b"}`,
      `{"e": "r", "t": "spaced"}`,
      `{"t":"turned","e":"c"}`,
      `{"e":"c","t":"a","t":"last"}`
    ].flatMap((line) =>
      decode(line).map((item) => (item._tag === "chunk" || item._tag === "reasoning_chunk" ? item.data.text : item))
    )
    assert.deepStrictEqual(texts, ['a\né"}', "a", "spaced", "turned", "last"])
    assert.strictEqual(decode(`{"e":"c","t":"a"b"}`)[0]?._tag, "malformed")
  })

  it("reads short compact lines exactly as JSON.parse does, valid or not", () => {
    const texts = [
      "",
      "}",
      "ü🦊",
      "a b",
      '\\"',
      "\\\\",
      "\\n",
      "\\ud83e",
      '"',
      "\\",
      "a\u0001",
      "\t",
      "x".repeat(12),
      "x".repeat(13)
    ]
    const lines = [
      ...texts.flatMap((text) => [`{"e":"c","t":"${text}"}`, `{"e":"r","t":"${text}"}`, `{"e":"x","t":"${text}"}`]),
      `{"e":"c","t":"}`,
      `{"e":"c","t":"a"]`,
      `{"e":"c","t":"a"}}`
    ]
    for (const line of lines) {
      const parsed = Result.try((): { readonly e: string; readonly t: string } => JSON.parse(line))
      const [item] = decode(`${line}\n`)
      if (Result.isFailure(parsed)) assert.strictEqual(item?._tag, "malformed", line)
      else if (parsed.success.e === "x") assert.strictEqual(item?._tag, "unrecognised", line)
      else {
        const _tag = parsed.success.e === "c" ? "chunk" : "reasoning_chunk"
        assert.deepStrictEqual(item, { _tag, data: { text: parsed.success.t }, seq: undefined })
      }
    }
  })

  it("takes the end of a line for no line of its own", () => {
    const bytes = utf8.encode(`junk{"e":"c","t":"a"}\n`)
    for (let cut = 0; cut <= bytes.length; cut++) {
      assert.deepStrictEqual(
        decodeCut(bytes, [cut]).map((item) => item._tag),
        ["malformed"]
      )
    }
  })

  it("reports a line over the bound and goes on", () => {
    const decoder = makeEventDecoder({ maxLineLength: 100 })
    const items: Array<StreamItem> = []
    for (let i = 0; i < 50; i++) items.push(...decoder.push(utf8.encode("x".repeat(10))))
    items.push(...decoder.push(utf8.encode(`\n{"e":"c","t":"on"}\n`)))
    assert.deepStrictEqual(
      items.map((item) => item._tag),
      ["malformed", "chunk"]
    )
  })

  const events: Arbitrary.Arbitrary<ReadonlyArray<StreamEvent>> = Arbitrary.schema(
    Schema.Array(
      Schema.Union([
        Schema.Struct({
          _tag: Schema.Literals(["chunk", "reasoning_chunk"]),
          data: Schema.Struct({ text: Schema.String }),
          seq: Schema.UndefinedOr(Schema.Int.check(Schema.isGreaterThan(0)))
        }),
        Schema.Struct({
          _tag: Schema.Literal("end"),
          data: Schema.Struct({ reason: Schema.String }),
          seq: Schema.Undefined
        })
      ])
    )
  )

  it.prop(
    "reads what the encoder writes, cut anywhere, compact or not",
    [events, Schema.Int, Schema.Boolean],
    ([list, at, compact]) => {
      const bytes = utf8.encode(list.map((event) => encodeEvent(event, { compact })).join(""))
      assert.deepStrictEqual(decodeCut(bytes, [Math.abs(at) % (bytes.length + 1)]), list)
    }
  )
})
