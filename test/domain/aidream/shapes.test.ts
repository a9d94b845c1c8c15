import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { delegationOfEvent, delegationOfPending } from "../../../src/domain/aidream/Delegation.ts"
import { BrowserDomState, ClientContext, DesktopNativeState } from "../../../src/domain/aidream/Envelope.ts"
import { ConversationId, UserRequestId } from "../../../src/domain/aidream/Ids.ts"
import { PendingCall, PendingCalls, pendingCallsOf } from "../../../src/domain/aidream/PendingCall.ts"
import { runEndAfter } from "../../../src/domain/aidream/RunEnd.ts"
import { readEvent, type StreamEvent } from "../../../src/domain/aidream/StreamEvent.ts"
import { requestToResume, ToolResultsRequest, ToolResultsResponse } from "../../../src/domain/aidream/ToolResults.ts"
import { ContinueRequest, ResumeRequest, StartRequest } from "../../../src/domain/aidream/TurnRequest.ts"

const dom = {
  surface: "assistant",
  is_admin: false,
  permission_mode: "ask",
  desktop_bridge: "none",
  onbox_ai_available: false
}

describe("Envelope", () => {
  it("F-22 keeps keys it does not know, both ways", () => {
    const state = Schema.decodeUnknownSync(BrowserDomState)({ ...dom, brand_new: { flag: true } })
    assert.deepStrictEqual(state.brand_new, { flag: true })
    assert.deepNestedPropertyVal(Schema.encodeSync(BrowserDomState)(state), "brand_new.flag", true)
  })

  it("fills what a client may leave out, and takes null for absent", () => {
    const state = Schema.decodeUnknownSync(BrowserDomState)({ ...dom, is_guest: null, current_url: null })
    assert.deepInclude(state, { is_guest: false, loaded_categories: [], current_url: null })
  })

  it("refuses a known key with a wrong value", () => {
    for (const wrong of [
      { surface: "sidebar" },
      { is_admin: "yes" },
      { current_tab_id: 1.5 },
      { tab_status: "done" }
    ]) {
      assert.strictEqual(Schema.decodeUnknownResult(BrowserDomState)({ ...dom, ...wrong })._tag, "Failure")
    }
  })

  it("reads windows as win32", () => {
    const state = Schema.decodeUnknownSync(DesktopNativeState)({
      platform: "windows",
      engine_version: "1",
      instance_id: "i",
      tunnel_state: "none"
    })
    assert.strictEqual(state.platform, "win32")
  })

  it("is built from nothing", () => {
    assert.deepStrictEqual(ClientContext.make({}), { capabilities: [], state: {}, mcp: [] })
  })
})

describe("TurnRequest", () => {
  it("gives defaults to what is absent or null and ignores unknown keys", () => {
    const start = Schema.decodeUnknownSync(StartRequest)({ user_input: "hi", tools: null, unheard_of: 1 })
    assert.deepInclude(start, { user_input: "hi", stream: true, store: true, max_iterations: 100, tools: [] })
    assert.notProperty(start, "unheard_of")
    assert.deepInclude(Schema.decodeUnknownSync(ContinueRequest)({}), { retry: false })
    assert.notProperty(Schema.encodeSync(ResumeRequest)(ResumeRequest.make({})), "user_input")
  })

  for (const [name, schema] of Object.entries({
    StartRequest,
    ContinueRequest,
    ResumeRequest,
    PendingCall,
    ToolResultsRequest
  })) {
    it.prop(`${name} survives the wire`, [Arbitrary.schema(Schema.toType(schema))], ([value]) => {
      const overTheWire = (typed: unknown) =>
        Schema.decodeUnknownSync(schema)(JSON.parse(JSON.stringify(Schema.encodeUnknownSync(schema)(typed))))
      const received = overTheWire(value)
      assert.deepStrictEqual(overTheWire(received), received)
    })
  }
})

describe("ToolResults", () => {
  it("F-21 requires the flag and the lists", () => {
    const whole = { resolved: [], already_resolved: [], not_found: [], continuation_needed: false }
    assert.strictEqual(Schema.decodeUnknownResult(ToolResultsResponse)(whole)._tag, "Success")
    for (const key of Object.keys(whole)) {
      assert.strictEqual(
        Schema.decodeUnknownResult(ToolResultsResponse)({ ...whole, [key]: undefined })._tag,
        "Failure"
      )
    }
    assert.isUndefined(requestToResume({ ...whole, user_request_id: "  " }))
    assert.strictEqual(requestToResume({ ...whole, user_request_id: "r" }), "r")
  })

  it("refuses an empty post", () => {
    assert.strictEqual(Schema.decodeUnknownResult(ToolResultsRequest)({ results: [] })._tag, "Failure")
  })
})

describe("Delegation", () => {
  const run = { conversationId: ConversationId.make("conv"), userRequestId: UserRequestId.make("req") }

  it("is the same from a stream and from the pending list, but for its source", () => {
    const event = readEvent({
      event: "tool_event",
      data: { event: "tool_delegated", call_id: "c", tool_name: "t", data: { arguments: { a: 1 } } }
    })
    const live = event._tag === "tool_event" ? delegationOfEvent(event.data, run) : undefined
    const row = {
      id: "1",
      call_id: "c",
      conversation_id: "conv",
      tool_name: "t",
      user_request_id: "req",
      arguments: { a: 1 }
    }
    for (const body of [[row], { pending_calls: [row] }]) {
      const [cold] = pendingCallsOf(Schema.decodeUnknownSync(PendingCalls)(body)).map(delegationOfPending)
      assert.deepStrictEqual({ ...live, source: "cold" }, { ...cold })
    }
  })

  it("F-34 only tool_delegated delegates", () => {
    for (const kind of ["tool_started", "tool_progress", "tool_step", "tool_completed", "tool_error"]) {
      const event = readEvent({ event: "tool_event", data: { event: kind, call_id: "c", tool_name: "t" } })
      assert.strictEqual(event._tag, "tool_event")
      if (event._tag === "tool_event") assert.isUndefined(delegationOfEvent(event.data, run))
    }
  })
})

describe("RunEnd", () => {
  const endOf = (...events: ReadonlyArray<unknown>) =>
    events
      .map(readEvent)
      .filter((event): event is StreamEvent => event._tag !== "unrecognised")
      .reduce<ReturnType<typeof runEndAfter>>(runEndAfter, "truncated")

  it("follows the table of part 3.6", () => {
    const complete = { event: "end", data: { reason: "complete" } }
    const failure = { event: "error", data: { error_type: "x", message: "m" } }
    assert.strictEqual(endOf(complete), "complete")
    assert.strictEqual(endOf({ event: "end", data: { reason: "cancelled" } }), "cancelled")
    assert.strictEqual(endOf(failure), "failed")
    assert.strictEqual(endOf(failure, complete), "failed")
    assert.strictEqual(endOf({ event: "phase", data: { phase: "complete" } }), "truncated")
    assert.strictEqual(endOf({ event: "end", data: { reason: "moon phase" } }), "truncated")
  })
})
