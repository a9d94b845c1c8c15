import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { json, lines, liveRun, refuse, startBackend, text } from "./support/Backend.ts"
import { agent, conversation, counting, startClient, watch } from "./support/Client.ts"
import { chunk, delegated, end, failure, type Line, phaseComplete } from "./support/events.ts"
import { until } from "./support/until.ts"

const live = Effect.gen(function* () {
  const backend = yield* startBackend
  const run = liveRun({ "x-request-id": "run-1" })
  backend.on("start", run.reply)
  const look = counting("look")
  const client = yield* startClient(backend, { tools: [look.tool] })
  const turn = yield* watch(
    client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
  )
  yield* turn.awaitTag("Stream")
  return { backend, run, client, turn, look }
})

const runEnd = Effect.fnUntraced(function* (events: ReadonlyArray<Line>) {
  const backend = yield* startBackend
  backend.on("start", lines(events))
  const client = yield* startClient(backend)
  return yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
})

describe("a run's stream", () => {
  it.effect("ends as its last words say", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* runEnd([chunk("a"), end()]), "complete")
      assert.strictEqual(yield* runEnd([end("cancelled")]), "cancelled")
      assert.strictEqual(yield* runEnd([failure("x"), end()]), "failed")
      assert.strictEqual(yield* runEnd([chunk("a"), phaseComplete]), "truncated")
      assert.strictEqual(yield* runEnd([]), "truncated")
    })
  )

  it.effect("F-35 silence for 75 seconds ends it, a heartbeat does not let it", () =>
    Effect.gen(function* () {
      const { backend, run, turn } = yield* live
      for (let beat = 1; beat <= 3; beat++) {
        yield* TestClock.adjust("74 seconds")
        run.write({ event: "heartbeat", data: { seq: beat } })
        yield* turn.awaitTag("Stream", 1 + beat)
        yield* backend.fence
      }
      yield* TestClock.adjust("74 seconds")
      yield* backend.fence
      assert.isUndefined(turn.outcome())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* turn.ended, "truncated")
      assert.strictEqual(turn.of("RunEnded").length, 1)
      assert.strictEqual(turn.of("TurnEnded").length, 1)
    })
  )

  it.effect("F-35 a body that stays open after the end gets 30 seconds", () =>
    Effect.gen(function* () {
      const terminal: ReadonlyArray<readonly [Line, string]> = [
        [end(), "complete"],
        [
          { event: "completion", data: { operation: "user_request", operation_id: "o", status: "success" } },
          "complete"
        ],
        [failure("x"), "failed"]
      ]
      for (const [line, outcome] of terminal) {
        const { backend, run, turn } = yield* live
        run.write(line)
        yield* turn.awaitTag("Stream", 2)
        yield* backend.fence
        yield* TestClock.adjust("29 seconds")
        yield* backend.fence
        assert.isUndefined(turn.outcome())
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* turn.ended, outcome)
      }
    })
  )

  it.effect("F-36 a provider's pause extends the patience to its end", () =>
    Effect.gen(function* () {
      const { backend, run, turn } = yield* live
      // Five minutes of the test clock, which began at the epoch.
      run.write({
        event: "provider_retry",
        data: { state: "scheduled", provider: "p", error_type: "busy", retry_at: "1970-01-01T00:05:00Z" }
      })
      yield* turn.awaitTag("Stream", 2)
      yield* backend.fence
      yield* TestClock.adjust("6 minutes")
      yield* backend.fence
      assert.isUndefined(turn.outcome())
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(yield* turn.ended, "truncated")
    })
  )

  it.effect("a dropped connection is a truncated run, and the calls it brought still run", () =>
    Effect.gen(function* () {
      const { backend, run, turn, look } = yield* live
      run.write(delegated("c1", "look"))
      yield* turn.awaitTag("CallDelegated")
      run.close()
      yield* turn.ended
      assert.strictEqual(look.runs.length, 1)
      assert.strictEqual(backend.to("tool_results").length, 1)
      assert.strictEqual(turn.of("RunEnded")[0]?.end, "truncated")
    })
  )

  it.effect("malformed and unknown lines are reported, and the stream goes on", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on(
        "start",
        text(
          `{"e":"c","t":"a"}\nnot json\n[1]\n{"event":"novel","data":{"x":1}}\n\ndata: {"e":"c","t":"b"}\n{"event":"end"}`
        )
      )
      const client = yield* startClient(backend)
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual(
        turn.of("StreamProblem").map(({ item }) => item._tag),
        ["malformed", "unrecognised"]
      )
      assert.deepStrictEqual(
        turn.of("Stream").map(({ event }) => event._tag),
        ["chunk", "other", "chunk", "end"]
      )
    })
  )

  it.effect("consumers get everything in order, also one that is slow and one that leaves", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const texts = Array.from({ length: 5000 }, (_, index) => `token ${index}`)
      backend.on("start", lines([...texts.map(chunk), end()]))
      const client = yield* startClient(backend)
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.ended
      assert.deepStrictEqual(
        turn.of("Stream").flatMap(({ event }) => (event._tag === "chunk" ? [event.data.text] : [])),
        texts
      )
    })
  )

  it.effect("a consumer that leaves stops neither the run nor its calls", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const run = liveRun()
      backend.on("start", run.reply)
      const look = counting("look")
      const client = yield* startClient(backend, { tools: [look.tool] })
      const consumer = yield* Effect.scoped(
        Effect.gen(function* () {
          const turn = yield* watch(
            client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
          )
          yield* turn.awaitTag("Stream")
          return turn
        })
      )
      run.write(delegated("c1", "look"), end())
      run.close()
      yield* backend.awaitRequests("tool_results", 1)
      assert.strictEqual(look.runs.length, 1)
      assert.isUndefined(consumer.outcome())
      assert.strictEqual(backend.to("cancel").length, 0)
    })
  )

  it.effect("a start that is refused fails the stream, and is never repeated", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on("start", text("Bad gateway", 502))
      const client = yield* startClient(backend)
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.ended
      assert.strictEqual(turn.error?.status, 502)
      yield* TestClock.adjust("10 minutes")
      yield* backend.fence
      assert.strictEqual(backend.to("start").length, 1)
    })
  )

  it.effect("a drained deployment is asked again, as it says, for three minutes", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const drained = json({ error: "unavailable" }, 503, { "x-matrx-drain": "deployment", "retry-after": "60" })
      backend.on("start", drained, drained, lines([end()]))
      const client = yield* startClient(backend)
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      for (const attempt of [1, 2]) {
        yield* backend.awaitRequests("start", attempt)
        yield* backend.fence
        yield* TestClock.adjust("15 seconds")
      }
      assert.strictEqual(yield* turn.ended, "complete")

      backend.on("start", drained)
      const hopeless = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      for (let attempt = 1; attempt <= 13; attempt++) {
        yield* backend.awaitRequests("start", 3 + attempt)
        yield* backend.fence
        yield* TestClock.adjust("15 seconds")
      }
      yield* hopeless.ended
      assert.strictEqual(hopeless.error?.status, 503)
    })
  )

  it.effect("the backend's own idea of the conversation's id does not replace ours", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on(
        "start",
        lines(
          [
            { event: "data", data: { type: "conversation_id", conversation_id: "other" } },
            delegated("c1", "look"),
            end()
          ],
          {
            "x-conversation-id": "other"
          }
        )
      )
      const look = counting("look")
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      yield* turn.ended
      assert.strictEqual(backend.to("tool_results")[0]?.conversationId, "conv-1")
    })
  )

  it.effect("a refused message on top of a live run is the consumer's to see", () =>
    Effect.gen(function* () {
      const { backend, client, run } = yield* live
      backend.on("continue", refuse(409, "run_in_flight"))
      const second = yield* watch(client.runs.run({ agentId: agent, message: "more", conversationId: conversation }))
      yield* until("it failed", () => second.error !== undefined)
      assert.strictEqual(second.error?.status, 409)
      run.close()
    })
  )
})
