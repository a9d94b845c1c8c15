import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import { LedgerFailure } from "../../src/layers/backend/Ledger.ts"
import type { ScriptedAnswer, ScriptedRequest } from "../../src/layers/backend/ScriptedModel.ts"
import { ServerTools } from "../../src/layers/backend/ServerTools.ts"
import {
  accepted,
  answer,
  delegatedIds,
  inline,
  lastResults,
  make,
  outline,
  pending,
  requestIdOf,
  rest,
  resume,
  start,
  textOf,
  until,
  uuid
} from "./support/backend.ts"

/** Calls the page's tools once, then says what they answered. */
const callsOnce =
  (...tools: ReadonlyArray<string>) =>
  ({ prompt, step }: ScriptedRequest): ScriptedAnswer =>
    step === 0
      ? { text: "Let me see. ", calls: tools.map((tool, index) => ({ tool, id: `c${index}` })) }
      : { text: lastResults(prompt) }

const slow = Tool.make("slow", { success: Schema.String })

/** A server tool that waits until the test lets it go. */
const slowTool = Effect.gen(function* () {
  const started = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  const toolkit = Toolkit.make(slow)
  const layer = ServerTools.layer(toolkit).pipe(
    Layer.provide(
      toolkit.toLayer({
        slow: () =>
          Deferred.succeed(started, undefined).pipe(Effect.andThen(Deferred.await(release)), Effect.as("slept"))
      })
    )
  )
  return { started, release, layer }
})

describe("hard suspend", () => {
  it.effect("F-01: closes the stream although no answer came, in the order of the contract", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: callsOnce("look", "click") })
      const id = uuid()
      const events = yield* rest(yield* start(backend, id, { tools: [inline("look"), inline("click")] }))
      assert.deepStrictEqual(outline(events), [
        "tool_delegated c0",
        "tool_delegated c1",
        "phase complete",
        "info suspended_awaiting_client",
        "completion success",
        "end complete"
      ])
      const info = events.find((event) => event._tag === "info")
      assert.deepStrictEqual(info?.data.metadata, {
        status: "suspended_awaiting_client",
        pending_call_ids: ["c0", "c1"],
        iteration: 1,
        will_continue: false
      })
      const [turn] = yield* backend.sql`SELECT status, metadata FROM user_requests`
      assert.strictEqual(turn?.status, "paused")
      assert.deepStrictEqual(JSON.parse(String(turn?.metadata)).pending_call_ids, ["c0", "c1"])
    })
  )

  it.effect("F-07: an answer posted the moment a call is announced finds the row", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: callsOnce("look") })
      const id = uuid()
      const opened = yield* start(backend, id, { tools: [inline("look")] })
      yield* until(opened, (event) => event._tag === "tool_event")
      const posted = yield* answer(backend, id, [{ call_id: "c0", output: 1 }])
      assert.deepStrictEqual(accepted(posted).resolved, ["c0"])
      assert.isTrue(accepted(posted).continuation_needed)
    })
  )

  it.effect("F-07: a call is not announced when its commit fails, and the turn stays resumable", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: callsOnce("look"),
        wrapLedger: (ledger) => ({
          ...ledger,
          delegate: () => Effect.fail(new LedgerFailure({ operation: "delegate", cause: "full" }))
        })
      })
      const id = uuid()
      const events = yield* rest(yield* start(backend, id, { tools: [inline("look")] }))
      assert.deepStrictEqual(delegatedIds(events), [])
      assert.deepStrictEqual(outline(events), ["error persistence_error", "completion failed", "end failed"])
      const [turn] = yield* backend.sql`SELECT status FROM user_requests`
      assert.strictEqual(turn?.status, "paused")
    })
  )

  it.effect("F-45: calls are announced after the server's own tools of the iteration have ended", () =>
    Effect.gen(function* () {
      const tool = yield* slowTool
      const backend = yield* make({
        model: callsOnce("look", "slow"),
        serverTools: tool.layer,
        agents: { any: { instructions: "", tools: ["slow"] } }
      })
      const id = uuid()
      const opened = yield* start(backend, id, { tools: [inline("look")] })
      const before = yield* until(opened, (event) => event._tag === "tool_event")
      yield* Deferred.await(tool.started)
      assert.deepStrictEqual(outline(before), ["tool_started c1"])
      // Nothing to answer yet: the row is not the client's before the server's tools are through.
      assert.deepStrictEqual(pending(yield* backend.get(`/ai/conversations/${id}/pending_calls`)), [])
      assert.strictEqual((yield* answer(backend, id, [{ call_id: "c0", output: 1 }])).status, 404)

      yield* Deferred.succeed(tool.release, undefined)
      assert.deepStrictEqual(outline(yield* rest(opened)), [
        "tool_completed c1",
        "tool_delegated c0",
        "phase complete",
        "info suspended_awaiting_client",
        "completion success",
        "end complete"
      ])
      yield* answer(backend, id, [{ call_id: "c0", output: "seen" }])
      const events = yield* rest(yield* resume(backend, id, { tools: [inline("look")] }))
      assert.strictEqual(textOf(events), 'look:"seen" slow:"slept"')
    })
  )

  it.effect("F-31: what is rebuilt after a suspension is what was streamed, once each", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: callsOnce("page:look", "page__click") })
      const id = uuid()
      const tools = [inline("page:look"), inline("page:click")]
      const first = yield* rest(yield* start(backend, id, { tools }))
      assert.deepStrictEqual(delegatedIds(first), ["c0", "c1"])
      yield* answer(backend, id, [
        { call_id: "c0", output: { title: "Home" } },
        { call_id: "c1", is_error: true, error_message: "no such element" }
      ])
      const second = yield* rest(yield* resume(backend, id, { tools }))
      assert.strictEqual(textOf(second), 'page:look:{"title":"Home"} page__click:!"no such element"')

      const messages = yield* backend.sql`SELECT position, role, content FROM messages ORDER BY position`
      assert.deepStrictEqual(
        messages.map(({ position, role }) => [position, role]),
        [
          [0, "user"],
          [1, "assistant"],
          [2, "assistant"]
        ]
      )
      assert.strictEqual(JSON.parse(String(messages[1]?.content)).content[0].text, "Let me see. ")
      const [turn] = yield* backend.sql`SELECT status, generation, iteration FROM user_requests`
      assert.deepStrictEqual({ ...turn }, { status: "completed", generation: 2, iteration: 2 })
    })
  )

  it.effect("a resumed run may suspend again, under the same turn", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: ({ step }) => (step < 3 ? { calls: [{ tool: "look" }] } : { text: "enough" })
      })
      const id = uuid()
      const tools = [inline("look")]
      let events = yield* rest(yield* start(backend, id, { tools }))
      const turn = requestIdOf(events)
      for (let round = 0; round < 3; round++) {
        yield* answer(backend, id, [{ call_id: delegatedIds(events)[0], output: round }])
        events = yield* rest(yield* resume(backend, id, { tools, user_request_id: turn }))
        assert.strictEqual(requestIdOf(events), turn)
      }
      assert.strictEqual(textOf(events), "enough")
    })
  )

  it.effect("a reader that leaves does not stop the run (1.6)", () =>
    Effect.gen(function* () {
      const tool = yield* slowTool
      const backend = yield* make({
        model: callsOnce("slow"),
        serverTools: tool.layer,
        agents: { any: { instructions: "", tools: ["slow"] } }
      })
      const id = uuid()
      const reader = yield* Effect.scoped(
        Effect.gen(function* () {
          const opened = yield* start(backend, id)
          yield* until(opened, (event) => event._tag === "tool_event")
        })
      ).pipe(Effect.forkChild)
      yield* Fiber.join(reader)
      yield* Deferred.succeed(tool.release, undefined)
      yield* Effect.yieldNow.pipe(
        Effect.andThen(backend.sql`SELECT status FROM user_requests`),
        Effect.repeat({ until: ([turn]) => turn?.status === "completed" })
      )
    })
  )

  it.effect("sends a heartbeat every ten seconds while it works", () =>
    Effect.gen(function* () {
      const tool = yield* slowTool
      const backend = yield* make({
        model: callsOnce("slow"),
        serverTools: tool.layer,
        agents: { any: { instructions: "", tools: ["slow"] } }
      })
      const opened = yield* start(backend, uuid())
      yield* Deferred.await(tool.started)
      yield* TestClock.adjust("25 seconds")
      yield* Deferred.succeed(tool.release, undefined)
      const beats = (yield* rest(opened)).filter(({ _tag }) => _tag === "heartbeat")
      assert.strictEqual(beats.length, 2)
    })
  )

  it.effect("an ephemeral run leaves nothing behind and hands nothing out", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: ({ tools }) => ({ text: `tools: ${tools.join(",")}` }) })
      const events = yield* rest(yield* start(backend, uuid(), { store: false, tools: [inline("look")] }))
      assert.strictEqual(textOf(events), "tools: ")
      assert.deepStrictEqual(yield* backend.sql`SELECT * FROM conversations`, [])
    })
  )
})
