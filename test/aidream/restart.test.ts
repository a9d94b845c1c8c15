import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope, SubscriptionRef } from "effect"
import { KeyValueStore } from "effect/persistence"
import { TestClock } from "effect/testing"
import { CallId, type PermissionMode, type Tier } from "../../src/aidream.ts"
import { accepted, json, lines, startBackend } from "./support/Backend.ts"
import { agent, type Client, conversation, counting, startClient, storeOf, watch } from "./support/Client.ts"
import { answers, delegated, suspends } from "./support/events.ts"
import { until } from "./support/until.ts"

/**
 * A client that is killed: what it wrote up to that moment is all the next one finds.
 * Whatever it does while its scope is torn down reaches nobody's disk.
 */
const killable = Effect.fnUntraced(function* (
  tier: Tier,
  mode: PermissionMode,
  run: () => Effect.Effect<unknown, unknown> = () => Effect.succeed("done")
) {
  const backend = yield* startBackend
  const tool = counting("tool", tier, run)
  const disk = new Map<string, string>()
  const scope = yield* Scope.make()
  backend.on("start", lines(suspends("req-1", delegated("c1", "tool", { n: 1 }))))
  backend.on("tool_results", accepted(true))
  backend.on("resume", lines(answers("fine")))
  const first = yield* startClient(backend, { tools: [tool.tool], store: storeOf(disk) }).pipe(Scope.provide(scope))
  const turn = yield* watch(
    first.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true, mode })
  ).pipe(Scope.provide(scope))
  const kill = Effect.gen(function* () {
    const survived = storeOf(new Map(disk))
    yield* Scope.close(scope, Exit.void)
    return yield* startClient(backend, { tools: [tool.tool], store: survived })
  })
  return { backend, tool, turn, first, kill, scope }
})

const results = (backend: {
  readonly to: (
    endpoint: "tool_results"
  ) => ReadonlyArray<{ readonly body: { readonly results: ReadonlyArray<Record<string, unknown>> } }>
}) => backend.to("tool_results").flatMap(({ body }) => body.results)

const click = (client: Client, allow: boolean) =>
  client.approvals.decide({ conversationId: conversation, callId: CallId.make("c1"), allow })

describe("after a crash", () => {
  it.effect("an answer that was not confirmed is posted again, and its tool does not run again", () =>
    Effect.gen(function* () {
      const { backend, tool, turn, kill } = yield* killable("read", "ask")
      const never = yield* Deferred.make<void>()
      backend.on("tool_results", () => Effect.andThen(Deferred.await(never), json({})), accepted(true))
      yield* turn.awaitTag("RunEnded")
      yield* backend.awaitRequests("tool_results", 1)
      const second = yield* kill
      yield* second.runs.recover
      yield* backend.awaitRequests("resume", 1)
      yield* until(
        "nothing is left",
        () => second.journal.entries().length === 0 && second.obligations.list().length === 0
      )
      assert.strictEqual(tool.runs.length, 1)
      assert.deepStrictEqual(
        results(backend).map(({ output }) => output),
        ["done", "done"]
      )
      yield* Deferred.succeed(never, undefined)
    })
  )

  it.effect("a call whose outcome is unknown is answered as an error and not run again", () =>
    Effect.gen(function* () {
      const { backend, tool, turn, kill } = yield* killable("read", "ask", () => Effect.never)
      yield* turn.awaitTag("CallStarted")
      const second = yield* kill
      yield* backend.fence
      assert.strictEqual(results(backend).length, 0)
      const opened = yield* watch(second.runs.open(conversation))
      assert.strictEqual(yield* opened.ended, "complete")
      assert.strictEqual(tool.runs.length, 1)
      const [result] = results(backend)
      assert.isTrue(result?.is_error)
      assert.match(String(result?.error_message), /unknown/)
    })
  )

  it.effect("F-16 an open question is asked again, and one click runs the call once", () =>
    Effect.gen(function* () {
      const { backend, tool, turn, first, kill } = yield* killable("action", "ask")
      yield* turn.awaitTag("ApprovalAsked")
      yield* until("it is open", () => SubscriptionRef.getUnsafe(first.approvals.open).length === 1)
      yield* TestClock.adjust("2 minutes")
      const second = yield* kill
      assert.isFalse(yield* click(second, true))
      yield* second.runs.recover
      yield* until("it is open again", () => SubscriptionRef.getUnsafe(second.approvals.open).length === 1)
      assert.strictEqual(SubscriptionRef.getUnsafe(second.approvals.open)[0]?.expiresAt, 300_000)
      assert.isTrue(yield* click(second, true))
      assert.isFalse(yield* click(second, true))
      yield* backend.awaitRequests("resume", 1)
      assert.strictEqual(tool.runs.length, 1)
      assert.isFalse(results(backend)[0]?.is_error)
    })
  )

  it.effect("F-16 a question that expired meanwhile fails closed", () =>
    Effect.gen(function* () {
      const { backend, tool, turn, kill } = yield* killable("action", "ask")
      yield* turn.awaitTag("ApprovalAsked")
      const second = yield* kill
      yield* TestClock.adjust("6 minutes")
      yield* second.runs.recover
      yield* backend.awaitRequests("tool_results", 1)
      assert.isFalse(yield* click(second, true))
      assert.deepStrictEqual(tool.runs, [])
      assert.match(String(results(backend)[0]?.error_message), /timed out/)
    })
  )

  it.effect("F-15 a call found again runs under the mode its turn was sent with", () =>
    Effect.gen(function* () {
      for (const mode of ["act", "ask"] as const) {
        const { backend, tool, turn, kill } = yield* killable("action", mode, () => Effect.never)
        yield* turn.awaitTag(mode === "act" ? "CallStarted" : "ApprovalAsked")
        const second = yield* kill
        const record = yield* second.records.get(conversation)
        assert.strictEqual(record?.mode, mode)
        backend.on(
          "pending_calls",
          json([{ id: "1", call_id: "c2", conversation_id: "conv-1", tool_name: "tool", user_request_id: "req-1" }])
        )
        const opened = yield* watch(second.runs.open(conversation))
        yield* opened.awaitTag(mode === "act" ? "CallStarted" : "ApprovalAsked")
        assert.strictEqual(tool.runs.length, mode === "act" ? 2 : 0)
      }
    })
  )

  it.effect("a continuation that was promised and not begun is begun", () =>
    Effect.gen(function* () {
      const { backend, tool, turn, first, kill } = yield* killable("read", "ask")
      const never = yield* Deferred.make<void>()
      backend.on("resume", () => Effect.andThen(Deferred.await(never), json({})), lines(answers("fine")))
      yield* turn.awaitTag("Resuming")
      yield* backend.awaitRequests("resume", 1)
      yield* until("the answer is confirmed", () => first.journal.entries().length === 0)
      const second = yield* kill
      const opened = yield* watch(second.runs.open(conversation))
      assert.strictEqual(yield* opened.ended, "complete")
      assert.strictEqual(backend.to("resume").length, 2)
      assert.strictEqual(tool.runs.length, 1)
      assert.deepStrictEqual(second.obligations.list(), [])
      yield* Deferred.succeed(never, undefined)
    })
  )

  it.effect("an entry of another version is dropped, and the rest is kept", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const disk = new Map([
        ["aidream/calls/broken", "{"],
        ["aidream/calls/old", JSON.stringify({ _tag: "Running", version: 0 })],
        ["of/somebody/else", "x"]
      ])
      const client = yield* startClient(backend, { store: storeOf(disk) })
      assert.deepStrictEqual(client.journal.entries(), [])
      assert.deepStrictEqual([...disk.keys()], ["of/somebody/else"])
    })
  )

  it.effect("a call that can't be recorded is not run", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const full = {
        ...storeOf(new Map()),
        set: () => Effect.fail(new KeyValueStore.KeyValueStoreError({ method: "set", message: "quota" }))
      }
      const tool = counting("tool")
      backend.on("start", lines(suspends("req-1", delegated("c1", "tool"))))
      const client = yield* startClient(backend, { tools: [tool.tool], store: full })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.ended
      assert.deepStrictEqual(tool.runs, [])
      assert.match(String(results(backend)[0]?.error_message), /can't record/)
    })
  )
})
