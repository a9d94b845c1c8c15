import { assert, describe, it } from "@effect/vitest"
import { readEvent, writeEvent } from "../../../src/domain/aidream/StreamEvent.ts"

describe("StreamEvent", () => {
  it("reads both forms of the hot types to the same value", () => {
    assert.deepStrictEqual(
      readEvent({ e: "c", t: "hi", stream_seq: 2 }),
      readEvent({ event: "chunk", data: { text: "hi" }, stream_seq: 2 })
    )
    assert.deepStrictEqual(
      readEvent({ e: "r", t: "hi" }),
      readEvent({ event: "reasoning_chunk", data: { text: "hi" } })
    )
  })

  it("needs both keys of a compact form", () => {
    for (const value of [{ e: "c" }, { e: "x", t: "hi" }, { e: "c", t: 1 }, { t: "hi" }]) {
      assert.deepStrictEqual(readEvent(value), { _tag: "unrecognised", value })
    }
  })

  it("keeps unknown keys of a known event", () => {
    const data = { code: "c", system_message: "m", brand_new: { deep: [1] } }
    assert.deepStrictEqual(readEvent({ event: "info", data }), { _tag: "info", data, seq: undefined })
  })

  it("passes unknown events and known ones with impossible data through unchanged", () => {
    for (const envelope of [
      { event: "render_block", data: { html: "<b>" } },
      { event: "phase", data: { phase: 7 } },
      { event: "novel", data: [1, 2] }
    ]) {
      const event = readEvent(envelope)
      assert.deepStrictEqual(event, { _tag: "other", event: envelope.event, data: envelope.data, seq: undefined })
      if (event._tag !== "unrecognised") assert.deepStrictEqual(writeEvent(event), envelope)
    }
  })

  it("treats absent and null the same in optional fields", () => {
    assert.strictEqual(readEvent({ event: "end", data: { reason: null } })._tag, "end")
    assert.strictEqual(readEvent({ event: "end", data: {} })._tag, "end")
    assert.strictEqual(readEvent({ event: "end" })._tag, "end")
  })

  it("ignores cursors that are no positive integers", () => {
    for (const stream_seq of [0, -1, 1.5, "3", null]) {
      assert.deepStrictEqual(readEvent({ e: "c", t: "", stream_seq }), {
        _tag: "chunk",
        data: { text: "" },
        seq: undefined
      })
    }
  })

  it("compares the name of resource_changed without case", () => {
    const data = { kind: "active_tools", action: "invalidated", resource_id: "c" }
    assert.deepStrictEqual(readEvent({ event: "RESOURCE_CHANGED", data }), {
      _tag: "resource_changed",
      data,
      seq: undefined
    })
    assert.strictEqual(readEvent({ event: "PHASE", data: { phase: "x" } })._tag, "other")
  })

  it("accepts eventName as a synonym", () => {
    assert.strictEqual(readEvent({ eventName: "phase", data: { phase: "x" } })._tag, "phase")
  })
})

describe("ToolEvent", () => {
  const delegated = { event: "tool_delegated", call_id: "c1", tool_name: "fill", data: { arguments: { a: 1 } } }

  it("keeps the present shape as it came", () => {
    const event = readEvent({ event: "tool_event", data: delegated })
    assert.strictEqual(event._tag, "tool_event")
    if (event._tag === "tool_event") assert.strictEqual<unknown>(event.data, delegated)
  })

  it("reads the older shapes", () => {
    const shapes = [
      { event: "tool_event", data: { event: "tool_delegated", callId: "c1", wireName: "fill", args: { a: 1 } } },
      { event: "tool_event", data: { event: "tool_delegated", call_id: "c1", tool_name: "fill", arguments: { a: 1 } } },
      { event: "tool_delegated", call_id: "c1", tool_name: "fill", data: { arguments: { a: 1 } } },
      { event: "tool_delegated", callId: "c1", toolName: "fill", data: { args: { a: 1 } } }
    ]
    for (const shape of shapes) {
      const event = readEvent(shape)
      assert.strictEqual(event._tag, "tool_event", JSON.stringify(shape))
      if (event._tag !== "tool_event") continue
      assert.strictEqual(event.data.call_id, "c1")
      assert.strictEqual(event.data.tool_name, "fill")
      assert.deepNestedPropertyVal(event.data, "data.arguments.a", 1)
    }
  })

  it("takes the canonical name for a missing name, and drops what could never be answered", () => {
    const named = readEvent({
      event: "tool_event",
      data: { event: "tool_delegated", call_id: "c", canonicalName: "a:b" }
    })
    assert.deepNestedPropertyVal(named, "data.tool_name", "a:b")
    assert.deepNestedPropertyVal(named, "data.canonical_name", "a:b")
    for (const data of [
      { event: "tool_delegated", tool_name: "x" },
      { event: "tool_delegated", call_id: "", tool_name: "x" },
      { event: "tool_delegated", call_id: "c" },
      { event: "tool_dreamt", call_id: "c", tool_name: "x" }
    ]) {
      assert.strictEqual(readEvent({ event: "tool_event", data })._tag, "other", JSON.stringify(data))
    }
  })
})
