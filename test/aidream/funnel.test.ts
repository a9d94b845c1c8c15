import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Credentials } from "../../src/aidream.ts"
import { accepted, type Handler, json, lines, type Reply, refuse, startBackend, text } from "./support/Backend.ts"
import { agent, type ClientOptions, conversation, counting, startClient, storeOf, watch } from "./support/Client.ts"
import { answers, delegated, suspends } from "./support/events.ts"
import { until } from "./support/until.ts"

const turnOf = Effect.fnUntraced(function* (posts: ReadonlyArray<Handler | Reply>, options: ClientOptions = {}) {
  const backend = yield* startBackend
  const look = counting("look")
  backend.on("start", lines(suspends("req-1", delegated("c1", "look"))))
  backend.on("tool_results", ...posts)
  backend.on("resume", lines(answers("fine")))
  const client = yield* startClient(backend, { tools: [look.tool], ...options })
  const turn = yield* watch(
    client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
  )
  return { backend, client, turn, look }
})

const down = text("Bad gateway", 502)

describe("the results funnel", () => {
  it.effect("tries three times, at 500 and 1000 ms plus up to 199", () =>
    Effect.gen(function* () {
      const { backend, turn } = yield* turnOf([down, down, accepted(true)])
      for (const [attempt, base] of [500, 1000].entries()) {
        yield* backend.awaitRequests("tool_results", attempt + 1)
        yield* backend.fence
        yield* TestClock.adjust(base - 1)
        yield* backend.fence
        assert.strictEqual(backend.to("tool_results").length, attempt + 1)
        yield* TestClock.adjust(200)
      }
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(backend.to("tool_results").length, 3)
    })
  )

  it.effect("F-20 an answer that could not be delivered is kept, and delivered after a restart", () =>
    Effect.gen(function* () {
      const store = storeOf(new Map())
      const { backend, turn, look } = yield* turnOf([down], { store })
      for (const attempt of [1, 2, 3]) {
        yield* backend.awaitRequests("tool_results", attempt)
        yield* backend.fence
        yield* TestClock.adjust(2000)
      }
      assert.strictEqual(yield* turn.ended, "paused")
      assert.deepStrictEqual(
        turn.of("CallSettled").map(({ delivery }) => delivery),
        ["kept"]
      )
      assert.strictEqual(backend.to("tool_results").length, 3)

      backend.on("tool_results", accepted(true))
      const next = yield* startClient(backend, { store, tools: [look.tool] })
      yield* next.runs.recover
      yield* backend.awaitRequests("resume", 1)
      yield* until("the journal is empty", () => next.journal.entries().length === 0)
      assert.strictEqual(look.runs.length, 1)
      assert.deepStrictEqual(backend.to("tool_results")[3]?.body, backend.to("tool_results")[0]?.body)
    })
  )

  it.effect("F-21 a success that is none is not taken for one", () =>
    Effect.gen(function* () {
      const strange = [
        text("<html>Welcome</html>"),
        json({}),
        json({ resolved: ["c1"], already_resolved: [], not_found: [] }),
        json({ resolved: "c1", already_resolved: [], not_found: [], continuation_needed: true })
      ]
      for (const reply of strange) {
        const { backend, client, turn } = yield* turnOf([reply])
        assert.strictEqual(yield* turn.ended, "paused")
        assert.deepStrictEqual(
          turn.of("CallSettled").map(({ delivery }) => delivery),
          ["kept"]
        )
        assert.strictEqual(backend.to("resume").length, 0)
        assert.strictEqual(backend.to("tool_results").length, 1)
        assert.strictEqual(client.journal.entries().length, 1)
      }
    })
  )

  it.effect("F-25 F-26 a call is settled when the backend has its answer, by a replay too", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { client, backend, turn } = yield* turnOf([
        () => Effect.andThen(Deferred.await(gate), text("x", 500)),
        down,
        down,
        accepted(false)
      ])
      yield* turn.awaitTag("CallFinished")
      yield* backend.awaitRequests("tool_results", 1)
      assert.strictEqual(turn.of("CallSettled").length, 0)
      yield* Deferred.succeed(gate, undefined)
      for (const attempt of [1, 2, 3]) {
        yield* backend.awaitRequests("tool_results", attempt)
        yield* backend.fence
        yield* TestClock.adjust(2000)
      }
      yield* turn.ended
      const again = yield* watch(client.runs.open(conversation))
      yield* again.ended
      assert.deepStrictEqual(
        again.of("CallSettled").map(({ delivery }) => delivery),
        ["delivered"]
      )
    })
  )

  it.effect("F-26 a call the backend does not know is not shown as delivered, and the rest goes on", () =>
    Effect.gen(function* () {
      const { client, turn } = yield* turnOf([
        (received) =>
          json({
            resolved: [],
            already_resolved: [],
            not_found: [received.body.results[0].call_id],
            continuation_needed: true,
            user_request_id: "req-1",
            conversation_id: "conv-1"
          })
      ])
      assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual(
        turn.of("CallSettled").map(({ delivery }) => delivery),
        ["dropped"]
      )
      assert.deepStrictEqual(client.journal.entries(), [])
    })
  )

  it.effect("refusals that no retry can change are dropped, loudly and at once", () =>
    Effect.gen(function* () {
      for (const reply of [refuse(404, "tool_calls_not_found"), refuse(422, "bad"), text("no", 403)]) {
        const { backend, client, turn } = yield* turnOf([reply])
        yield* turn.ended
        assert.deepStrictEqual(
          turn.of("CallSettled").map(({ delivery }) => delivery),
          ["dropped"]
        )
        assert.strictEqual(backend.to("tool_results").length, 1)
        assert.deepStrictEqual(client.journal.entries(), [])
      }
    })
  )

  it.effect("408 and 429 are tried again", () =>
    Effect.gen(function* () {
      for (const status of [408, 429]) {
        const { backend, turn } = yield* turnOf([text("later", status), accepted(true)])
        yield* backend.awaitRequests("tool_results", 1)
        yield* backend.fence
        yield* TestClock.adjust(1000)
        assert.strictEqual(yield* turn.ended, "complete")
      }
    })
  )

  it.effect("an answer that takes longer than 30 seconds counts as none", () =>
    Effect.gen(function* () {
      const release = yield* Deferred.make<void>()
      const { backend, turn } = yield* turnOf([
        () => Effect.andThen(Deferred.await(release), text("too late", 500)),
        accepted(true)
      ])
      yield* backend.awaitRequests("tool_results", 1)
      yield* backend.fence
      yield* TestClock.adjust("30 seconds")
      yield* backend.fence
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* turn.ended, "complete")
      yield* Deferred.succeed(release, undefined)
      assert.strictEqual(backend.to("tool_results").length, 2)
    })
  )

  it.effect("a 401 refreshes the token once; a second one keeps the answer for later", () =>
    Effect.gen(function* () {
      let token = "old"
      const credentials = Credentials.layerSession({
        signedIn: Effect.succeed(true),
        readToken: Effect.sync(() => Redacted.make(token)),
        refreshToken: Effect.sync(() => {
          token = "new"
          return Redacted.make(token)
        }),
        fingerprint: Redacted.make("fp")
      })
      const onlyNew: Handler = (received) =>
        received.headers.authorization === "Bearer new" ? accepted(true)(received) : text("who?", 401)
      const good = yield* turnOf([onlyNew], { credentials })
      assert.strictEqual(yield* good.turn.ended, "complete")
      assert.deepStrictEqual(
        good.backend.to("tool_results").map(({ headers }) => headers.authorization),
        ["Bearer old", "Bearer new"]
      )

      const bad = yield* turnOf([text("who?", 401)])
      assert.strictEqual(yield* bad.turn.ended, "paused")
      assert.deepStrictEqual(
        bad.turn.of("CallSettled").map(({ delivery }) => delivery),
        ["kept"]
      )
      assert.strictEqual(bad.backend.to("tool_results").length, 2)
    })
  )

  it.effect("a hundred calls that finish in one tick make one post and one resume", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const tick = yield* Deferred.make<void>()
      const wait = counting("wait", "read", () => Deferred.await(tick))
      const calls = Array.from({ length: 100 }, (_, index) => delegated(`c${index}`, "wait"))
      backend.on("start", lines(suspends("req-1", ...calls)))
      backend.on("tool_results", accepted(true))
      backend.on("resume", lines(answers("fine")))
      const client = yield* startClient(backend, { tools: [wait.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.awaitTag("CallStarted", 100)
      yield* turn.awaitTag("RunEnded")
      yield* Deferred.succeed(tick, undefined)
      assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual(
        backend.to("tool_results").map(({ body }) => body.results.length),
        [100]
      )
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("a call is not held back for a sibling that still runs", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const wait = counting("wait", "read", ({ ms }) => Effect.sleep(Number(ms)))
      backend.on(
        "start",
        lines(suspends("req-1", delegated("a", "wait", { ms: 1000 }), delegated("b", "wait", { ms: 2000 })))
      )
      const client = yield* startClient(backend, { tools: [wait.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.awaitTag("CallStarted", 2)
      yield* TestClock.adjust("1 second")
      yield* backend.awaitRequests("tool_results", 1)
      yield* TestClock.adjust("1 second")
      yield* backend.awaitRequests("tool_results", 2)
      assert.deepStrictEqual(
        backend
          .to("tool_results")
          .map(({ body }) => body.results.map((result: { readonly call_id: string }) => result.call_id)),
        [["a"], ["b"]]
      )
      yield* turn.ended
    })
  )

  it.effect("one unacceptable answer does not take its siblings down", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const look = counting("look")
      backend.on("start", lines(suspends("req-1", delegated("good", "look"), delegated("bad", "look"))))
      backend.on("tool_results", (received) => {
        const ids = received.body.results.map((result: { readonly call_id: string }) => result.call_id)
        return ids.includes("bad") ? refuse(422, "invalid") : accepted(true)(received)
      })
      backend.on("resume", lines(answers("fine")))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual(
        turn.of("CallSettled").map(({ callId, delivery }) => [String(callId), delivery]),
        [
          ["good", "delivered"],
          ["bad", "dropped"]
        ]
      )
    })
  )

  it.effect("one conversation's failing posts do not touch another's", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const look = counting("look")
      backend.on("start", lines(suspends("req-1", delegated("c1", "look"))))
      backend.on("tool_results", (received) =>
        received.conversationId === "conv-1" ? text("no", 403) : accepted(true)(received)
      )
      backend.on("resume", lines(answers("fine")))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const bad = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      const good = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      assert.strictEqual(yield* good.ended, "complete")
      assert.strictEqual(yield* bad.ended, "paused")
    })
  )
})
