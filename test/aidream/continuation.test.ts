import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { ConversationId, UserRequestId } from "../../src/aidream.ts"
import { accepted, json, lines, liveRun, refuse, startBackend, text } from "./support/Backend.ts"
import { agent, conversation, counting, startClient, watch } from "./support/Client.ts"
import { answers, delegated, end, failure, suspends } from "./support/events.ts"
import { until } from "./support/until.ts"

/** A backend whose first run delegates `look`, and whose answers ask for a resume. */
const suspended = Effect.gen(function* () {
  const backend = yield* startBackend
  const look = counting("look")
  backend.on("start", lines(suspends("req-1", delegated("c1", "look"))))
  backend.on("tool_results", accepted(true))
  backend.on("resume", lines(answers("fine")))
  return { backend, look }
})

describe("continuation", () => {
  it.effect("F-02 only a resume continues, and there is exactly one", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      assert.strictEqual(yield* turn.ended, "complete")
      yield* backend.fence
      assert.deepStrictEqual(
        backend.received.map(({ endpoint }) => endpoint),
        ["start", "tool_results", "resume"]
      )
      assert.deepStrictEqual(
        turn.of("RunEnded").map(({ end, suspended }) => [end, suspended]),
        [
          ["complete", true],
          ["complete", false]
        ]
      )
    })
  )

  it.effect("F-03 two answers that both say continue open one resume", () =>
    Effect.gen(function* () {
      const { backend } = yield* suspended
      const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      const slow = counting("slow", "read", ({ n }) => Deferred.await(n === 0 ? gates[0] : gates[1]))
      backend.on("start", lines(suspends("req-1", delegated("a", "slow", { n: 0 }), delegated("b", "slow", { n: 1 }))))
      // Both posts are held until both are in, so both answers arrive while no resume is open.
      const both = yield* Deferred.make<void>()
      backend.on("tool_results", (received) => Effect.andThen(Deferred.await(both), accepted(true)(received)))
      const client = yield* startClient(backend, { tools: [slow.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.awaitTag("RunEnded")
      yield* Deferred.succeed(gates[0], undefined)
      yield* backend.awaitRequests("tool_results", 1)
      yield* Deferred.succeed(gates[1], undefined)
      yield* backend.awaitRequests("tool_results", 2)
      yield* Deferred.succeed(both, undefined)
      assert.strictEqual(yield* turn.ended, "complete")
      yield* backend.fence
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("F-05 a resume that meets a live run is tried again at 700 ms times the attempt", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const conflict = refuse(409, "resume_conflict", { retryable: true, status: "processing" })
      backend.on("resume", conflict, conflict, lines(answers("fine")))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      for (const [attempt, pause] of [700, 1400].entries()) {
        yield* turn.awaitTag("Resuming", attempt + 1)
        yield* backend.awaitRequests("resume", attempt + 1)
        yield* backend.fence
        yield* TestClock.adjust(pause - 1)
        yield* backend.fence
        assert.strictEqual(backend.to("resume").length, attempt + 1)
        yield* TestClock.adjust(1)
      }
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(backend.to("resume").length, 3)
      assert.strictEqual(turn.of("ResumeDeferred").length, 0)
    })
  )

  it.effect("a conflict is tried five times in all, and a later signal gets no fresh budget", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      backend.on("resume", refuse(409, "resume_conflict", { status: "pending" }))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      for (const [attempt, pause] of [700, 1400, 2100, 2800].entries()) {
        yield* backend.awaitRequests("resume", attempt + 1)
        yield* backend.fence
        yield* TestClock.adjust(pause)
      }
      assert.strictEqual(yield* turn.ended, "paused")
      assert.deepStrictEqual(
        turn.of("ResumeDeferred").map(({ reason }) => reason),
        ["conflict"]
      )
      yield* TestClock.adjust("1 minute")
      yield* backend.fence
      assert.strictEqual(backend.to("resume").length, 5)

      yield* client.runs.recover
      yield* backend.awaitRequests("resume", 6)
      yield* backend.fence
      yield* TestClock.adjust("1 minute")
      yield* backend.fence
      assert.strictEqual(backend.to("resume").length, 6)
    })
  )

  it.effect("outstanding calls, a finished turn and unknown codes are not tried again", () =>
    Effect.gen(function* () {
      const cases = [
        {
          reply: refuse(409, "outstanding_delegated_calls", { outstanding_call_ids: ["x"] }),
          outcome: "paused",
          reason: "outstanding"
        },
        {
          reply: refuse(409, "not_resumable", { status: "completed", retryable: false }),
          outcome: "settled",
          reason: "settled"
        },
        { reply: text("conflict", 409), outcome: "paused", reason: "outstanding" },
        { reply: refuse(404, "user_request_not_found"), outcome: "failed", reason: "refused" },
        { reply: refuse(422, "tool_merge_error"), outcome: "failed", reason: "refused" }
      ] as const
      for (const { reply, outcome, reason } of cases) {
        const { backend, look } = yield* suspended
        backend.on("resume", reply)
        const client = yield* startClient(backend, { tools: [look.tool] })
        const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
        assert.strictEqual(yield* turn.ended, outcome)
        assert.deepStrictEqual(
          turn.of("ResumeDeferred").map((event) => event.reason),
          [reason]
        )
        yield* TestClock.adjust("1 minute")
        yield* backend.fence
        assert.strictEqual(backend.to("resume").length, 1)
        assert.deepStrictEqual(client.obligations.list(), [])
      }
    })
  )

  it.effect("F-04 a conflict is recognised in every wrapper", () =>
    Effect.gen(function* () {
      const bodies = [
        { error: "conflict", message: "resume_conflict: busy", details: {} },
        { detail: { code: "resume_conflict" } },
        { detail: "resume_conflict: busy" },
        { code: "resume_conflict" },
        { error: { code: "resume_conflict" } }
      ]
      for (const body of bodies) {
        const { backend, look } = yield* suspended
        backend.on("resume", json(body, 409), lines(answers("fine")))
        const client = yield* startClient(backend, { tools: [look.tool] })
        const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
        yield* backend.awaitRequests("resume", 1)
        yield* backend.fence
        yield* TestClock.adjust(700)
        assert.strictEqual(yield* turn.ended, "complete")
      }
    })
  )

  it.effect("F-12 an invitation is stale while a call of the turn still runs here", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const release = yield* Deferred.make<void>()
      const slow = counting("slow", "read", () => Deferred.await(release))
      backend.on("start", lines(suspends("req-1", delegated("a", "look"), delegated("b", "slow"))))
      const client = yield* startClient(backend, { tools: [look.tool, slow.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.awaitTag("ResumeDeferred")
      assert.strictEqual(turn.of("ResumeDeferred")[0]?.reason, "stale")
      assert.strictEqual(backend.to("resume").length, 0)
      yield* Deferred.succeed(release, undefined)
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("F-23 a continuation that beats the end of the run waits for it", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const run = liveRun()
      backend.on("start", run.reply)
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      run.write(delegated("c1", "look"))
      yield* turn.awaitTag("CallSettled")
      yield* backend.fence
      // Longer than a claim lives: what waits must not depend on it.
      yield* TestClock.adjust("20 seconds")
      yield* backend.fence
      assert.strictEqual(backend.to("resume").length, 0)
      run.write(end())
      run.close()
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("F-24 three listeners, one resume", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const run = liveRun()
      backend.on("start", run.reply)
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      yield* turn.awaitTag("RunOpened")
      const others = [yield* watch(client.runs.open(conversation)), yield* watch(client.runs.open(conversation))]
      yield* until("all listen", () => client.conversations.get(conversation).subscribers.size === 3)
      run.write(...suspends("req-1", delegated("c1", "look")))
      run.close()
      assert.strictEqual(yield* turn.ended, "complete")
      for (const other of others) assert.strictEqual(yield* other.ended, "complete")
      assert.strictEqual(backend.to("resume").length, 1)
      assert.strictEqual(look.runs.length, 1)
      assert.strictEqual(backend.to("pending_calls").length, 0)
    })
  )

  it.effect("F-37 a resume that ends early is owed until the backend says otherwise", () =>
    Effect.gen(function* () {
      for (const early of [[], [end("cancelled")], [failure("boom"), end()]]) {
        const { backend, look } = yield* suspended
        backend.on("resume", lines(early), lines(answers("fine")))
        const client = yield* startClient(backend, { tools: [look.tool] })
        const turn = yield* watch(
          client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
        )
        assert.oneOf(yield* turn.ended, ["truncated", "cancelled", "failed"])
        assert.strictEqual(client.obligations.list().length, 1)

        backend.on("tool_results", (received) =>
          json({
            resolved: [],
            already_resolved: [received.body.results[0].call_id],
            not_found: [],
            continuation_needed: true,
            user_request_id: "req-1",
            conversation_id: received.conversationId
          })
        )
        const again = yield* watch(client.runs.open(conversation))
        assert.strictEqual(yield* again.ended, "complete")
        assert.strictEqual(backend.to("resume").length, 2)
        assert.deepStrictEqual(client.obligations.list(), [])
        assert.strictEqual(look.runs.length, 1)
      }
    })
  )

  it.effect("an owed continuation the backend needs no more is forgotten", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      backend.on("resume", lines([]))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.ended
      backend.on("tool_results", accepted(false))
      yield* client.runs.recover
      yield* backend.awaitRequests("tool_results", 2)
      yield* until("nothing is owed", () => client.obligations.list().length === 0)
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("F-42 a second suspension of the same turn within the claim's life is resumed too", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      backend.on(
        "resume",
        lines(suspends("req-1", delegated("c2", "look")), { "x-request-id": "another-run" }),
        lines(answers("fine"))
      )
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(backend.to("resume").length, 2)
      assert.strictEqual(look.runs.length, 2)
    })
  )

  it.effect("F-44 a resume names its own turn", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      backend.on("tool_results", accepted(true, "req-of-this-turn"))
      const client = yield* startClient(backend, { tools: [look.tool] })
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
      assert.strictEqual(backend.to("resume")[0]?.body.user_request_id, "req-of-this-turn")
    })
  )

  it.effect("a turn without a name is resumed by its conversation", () =>
    Effect.gen(function* () {
      for (const none of [null, " "]) {
        const { backend, look } = yield* suspended
        backend.on("tool_results", accepted(true, none))
        const client = yield* startClient(backend, { tools: [look.tool] })
        assert.strictEqual(yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended, "complete")
        assert.isNull(backend.to("resume")[0]?.body.user_request_id)
      }
    })
  )

  it.effect("a slow attempt keeps its claim beyond the claim's life", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const release = yield* Deferred.make<void>()
      backend.on("resume", () => Effect.andThen(Deferred.await(release), lines(answers("fine"))))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      yield* backend.awaitRequests("resume", 1)
      yield* TestClock.adjust("15 seconds")
      yield* client.continuations.offer({
        conversationId: conversation,
        userRequestId: UserRequestId.make("req-1"),
        turn: undefined
      })
      yield* Deferred.succeed(release, undefined)
      assert.strictEqual(yield* turn.ended, "complete")
      yield* backend.fence
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("a newer message drops the continuation of the older turn", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      const conflict = refuse(409, "resume_conflict", { status: "processing" })
      backend.on("resume", conflict)
      backend.on("continue", lines(answers("newer")))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      yield* backend.awaitRequests("resume", 1)
      yield* backend.fence
      const newer = yield* watch(client.runs.run({ agentId: agent, message: "more", conversationId: conversation }))
      assert.strictEqual(yield* newer.ended, "complete")
      yield* TestClock.adjust("1 minute")
      yield* backend.fence
      assert.strictEqual(backend.to("resume").length, 1)
      assert.strictEqual(yield* turn.ended, "superseded")
    })
  )

  it.effect("two conversations at once do not share a claim", () =>
    Effect.gen(function* () {
      const { backend, look } = yield* suspended
      backend.on("tool_results", (received) => accepted(true, `req-of-${received.conversationId}`)(received))
      const client = yield* startClient(backend, { tools: [look.tool] })
      const turns = yield* Effect.forEach(["one", "two", "three"], (id) =>
        watch(client.runs.run({ agentId: agent, message: "hi", conversationId: ConversationId.make(id), isNew: true }))
      )
      for (const turn of turns) assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual(
        backend
          .to("resume")
          .map(({ body }) => body.user_request_id)
          .sort(),
        ["req-of-one", "req-of-three", "req-of-two"]
      )
    })
  )

  it.effect("cancel stops the calls, the continuation and the run, and ends the turn", () =>
    Effect.gen(function* () {
      const { backend } = yield* suspended
      const never = counting("never", "read", () => Effect.never)
      backend.on("start", lines(suspends("req-1", delegated("c1", "never")), { "x-request-id": "run-7" }))
      const client = yield* startClient(backend, { tools: [never.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      yield* turn.awaitTag("RunEnded")
      yield* client.runs.cancel(conversation)
      assert.strictEqual(yield* turn.ended, "cancelled")
      yield* backend.fence
      assert.deepStrictEqual(
        backend.to("cancel").map(({ url }) => url),
        ["/ai/cancel/run-7"]
      )
      assert.strictEqual(backend.to("resume").length, 0)
      const [post] = backend.to("tool_results")
      assert.isTrue(post?.body.results[0].is_error)
      assert.match(post?.body.results[0].error_message, /may have taken effect/)
      assert.deepStrictEqual(client.journal.entries(), [])
    })
  )

  it.effect("F-40 a message on top of unanswered calls is refused, or cancels them first", () =>
    Effect.gen(function* () {
      const { backend } = yield* suspended
      const never = counting("never", "read", () => Effect.never)
      backend.on("start", lines(suspends("req-1", delegated("c1", "never")), { "x-request-id": "run-7" }))
      backend.on("continue", lines(answers("newer")))
      const client = yield* startClient(backend, { tools: [never.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      yield* turn.awaitTag("RunEnded")
      const refused = yield* watch(client.runs.run({ agentId: agent, message: "more", conversationId: conversation }))
      yield* refused.ended
      assert.strictEqual(refused.error?.reason._tag, "TurnSuspended")
      assert.strictEqual(backend.to("continue").length, 0)
      const insisting = yield* watch(
        client.runs.run({ agentId: agent, message: "more", conversationId: conversation, whenSuspended: "cancel" })
      )
      assert.strictEqual(yield* insisting.ended, "complete")
      assert.strictEqual(yield* turn.ended, "cancelled")
      assert.strictEqual(backend.to("cancel").length, 1)
    })
  )
})
