import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema, SubscriptionRef } from "effect"
import { TestClock } from "effect/testing"
import { CallId, makeTool, type PermissionMode, type Tier, ToolFailure } from "../../src/aidream.ts"
import { accepted, type Backend, json, lines, liveRun, refuse, startBackend } from "./support/Backend.ts"
import { agent, type Client, type ClientOptions, conversation, counting, startClient, watch } from "./support/Client.ts"
import { answers, delegated, end, type Line, requestReserved, suspends } from "./support/events.ts"
import { until } from "./support/until.ts"

const pending = (callId: string, tool: string, args: unknown = {}, more: Line = {}) => ({
  id: `row-${callId}`,
  call_id: callId,
  conversation_id: "conv-1",
  tool_name: tool,
  user_request_id: "req-1",
  arguments: args,
  ...more
})

/** Results the backend got, by call id. */
const results = (backend: Backend) =>
  Object.fromEntries(
    backend
      .to("tool_results")
      .flatMap(({ body }) => body.results)
      .map((result) => [result.call_id, result])
  )

/** A turn that delegates these calls once, and a client with these tools. */
const turnOf = Effect.fnUntraced(function* (
  calls: ReadonlyArray<Line>,
  options: ClientOptions & { readonly mode?: PermissionMode } = {}
) {
  const backend = yield* startBackend
  backend.on("start", lines(suspends("req-1", ...calls)))
  const client = yield* startClient(backend, options)
  const turn = yield* watch(
    client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true, mode: options.mode })
  )
  yield* turn.awaitTag("RunEnded")
  return { backend, client, turn }
})

const asks = (client: Client) => SubscriptionRef.getUnsafe(client.approvals.open)
const decide = (client: Client, callId: string, allow: boolean, remember?: "conversation") =>
  client.approvals.decide({ conversationId: conversation, callId: CallId.make(callId), allow, remember })

describe("dispatch", () => {
  it.effect("F-34 only tool_delegated runs anything", () =>
    Effect.gen(function* () {
      const look = counting("look")
      const started = { event: "tool_event", data: { event: "tool_started", call_id: "c1", tool_name: "look" } }
      const { turn, backend } = yield* turnOf([started], { tools: [look.tool] })
      yield* turn.ended
      assert.deepStrictEqual(look.runs, [])
      assert.strictEqual(backend.to("tool_results").length, 0)
    })
  )

  it.effect("F-13 a call runs once, however often and from wherever it comes", () =>
    Effect.gen(function* () {
      const release = yield* Deferred.make<void>()
      const slow = counting("slow", "read", () => Deferred.await(release))
      const call = delegated("c1", "slow")
      const { backend, client, turn } = yield* turnOf([call, call], { tools: [slow.tool] })
      backend.on("pending_calls", json([pending("c1", "slow")]))
      const cold = yield* watch(client.runs.open(conversation))
      yield* backend.awaitRequests("pending_calls", 1)
      yield* backend.fence
      yield* Deferred.succeed(release, undefined)
      yield* turn.ended
      yield* cold.ended
      const again = yield* watch(client.runs.open(conversation))
      yield* again.ended
      assert.strictEqual(slow.runs.length, 1)
      assert.strictEqual(backend.to("tool_results").flatMap(({ body }) => body.results).length, 1)
    })
  )

  it.effect("cold resume runs read tools, asks about others, and answers unknown names", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const [look, write] = [counting("look"), counting("write", "action")]
      backend.on(
        "pending_calls",
        json([pending("a", "look"), pending("b", "write"), pending("c", "gone"), pending("d", "local_x")])
      )
      backend.on("tool_results", (received) => {
        const isLast = received.body.results.some((result: { readonly call_id: string }) => result.call_id === "b")
        return accepted(isLast)(received)
      })
      backend.on("resume", lines(answers("fine")))
      const client = yield* startClient(backend, { tools: [look.tool, write.tool] })
      const turn = yield* watch(client.runs.open(conversation))
      yield* turn.awaitTag("ApprovalAsked")
      yield* until("two are answered", () => Object.keys(results(backend)).length === 2)
      assert.deepStrictEqual(write.runs, [])
      assert.isTrue(results(backend).c.is_error)
      yield* decide(client, "b", true)
      assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual([look.runs.length, write.runs.length], [1, 1])
      assert.deepStrictEqual(Object.keys(results(backend)).sort(), ["a", "b", "c"])
      assert.strictEqual(backend.to("resume").length, 1)
    })
  )

  it.effect("a pending list that can't be had is an error, not an empty one", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on("pending_calls", refuse(404, "conversation_not_found"))
      const client = yield* startClient(backend)
      const turn = yield* watch(client.runs.open(conversation))
      yield* turn.ended
      assert.strictEqual(turn.error?.status, 404)
    })
  )

  it.effect("a turn whose continuation was lost is resumed by conversation on request", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on("resume", lines(answers("fine")))
      const client = yield* startClient(backend)
      assert.strictEqual(yield* (yield* watch(client.runs.open(conversation))).ended, "idle")
      const turn = yield* watch(client.runs.open(conversation, { resume: true }))
      assert.strictEqual(yield* turn.ended, "complete")
      assert.isNull(backend.to("resume")[0]?.body.user_request_id)
    })
  )

  it.effect("F-17 the mode is latched before the request leaves", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const write = counting("write", "action")
      // The call is in the very first bytes of the stream.
      backend.on("start", lines([delegated("c1", "write"), end()]))
      const client = yield* startClient(backend, { tools: [write.tool] })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi", mode: "act" }))
      yield* turn.ended
      assert.strictEqual(write.runs.length, 1)
      assert.strictEqual(turn.of("ApprovalAsked").length, 0)
    })
  )

  it.effect("tiers ask as the table says", () =>
    Effect.gen(function* () {
      const table: ReadonlyArray<readonly [Tier, PermissionMode, boolean]> = [
        ["read", "ask", false],
        ["read", "act", false],
        ["action", "ask", true],
        ["action", "act", false],
        ["privileged", "ask", true],
        ["privileged", "act", true],
        ["ask-user", "ask", false],
        ["ask-user", "act", false]
      ]
      for (const [tier, mode, asked] of table) {
        const tool = counting("t", tier)
        const { turn, client } = yield* turnOf([delegated("c1", "t")], { tools: [tool.tool], mode })
        if (asked) {
          yield* turn.awaitTag("ApprovalAsked")
          assert.strictEqual(tool.runs.length, 0, `${tier} in ${mode}`)
          yield* decide(client, "c1", true)
        }
        yield* turn.ended
        assert.strictEqual(tool.runs.length, 1, `${tier} in ${mode}`)
      }
    })
  )

  it.effect("a denial and a timeout are error results, and the question is withdrawn", () =>
    Effect.gen(function* () {
      const write = counting("write", "action")
      const { turn, client, backend } = yield* turnOf([delegated("a", "write"), delegated("b", "write")], {
        tools: [write.tool]
      })
      yield* turn.awaitTag("ApprovalAsked", 2)
      yield* until("both are open", () => asks(client).length === 2)
      assert.isTrue(yield* decide(client, "a", false))
      yield* backend.awaitRequests("tool_results", 1)
      yield* TestClock.adjust("4 minutes")
      yield* backend.fence
      assert.strictEqual(asks(client).length, 1)
      yield* TestClock.adjust("1 minute")
      yield* turn.ended
      assert.deepStrictEqual(write.runs, [])
      assert.deepStrictEqual(asks(client), [])
      assert.match(results(backend).a.error_message, /denied/)
      assert.match(results(backend).b.error_message, /timed out/)
      assert.strictEqual(results(backend).b.duration_ms, 0)
      assert.isFalse(yield* decide(client, "b", true))
    })
  )

  it.effect("F-14 one click decides one call, and a second decides nothing", () =>
    Effect.gen(function* () {
      const write = counting("write", "action")
      const { turn, client } = yield* turnOf(
        [delegated("a", "write"), delegated("a", "write"), delegated("b", "write")],
        { tools: [write.tool] }
      )
      yield* turn.awaitTag("ApprovalAsked", 2)
      yield* until("both are open", () => asks(client).length === 2)
      assert.isTrue(yield* decide(client, "a", true))
      assert.isFalse(yield* decide(client, "a", true))
      yield* turn.awaitTag("CallFinished")
      assert.strictEqual(write.runs.length, 1)
      assert.isTrue(yield* decide(client, "b", false))
      yield* turn.ended
    })
  )

  it.effect("F-18 a remembered host is trusted for action calls of this conversation only", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const [go, wipe] = [counting("go", "action"), counting("wipe", "privileged")]
      const run = liveRun()
      backend.on("start", run.reply)
      const client = yield* startClient(backend, { tools: [go.tool, wipe.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      const url = "https://shop.example/cart"
      run.write(requestReserved("req-1"), delegated("a", "go", { url }))
      yield* turn.awaitTag("ApprovalAsked", 1)
      yield* decide(client, "a", true, "conversation")
      yield* turn.awaitTag("CallFinished", 1)
      run.write(delegated("b", "go", { url: "https://shop.example/other" }))
      yield* turn.awaitTag("CallFinished", 2)
      assert.strictEqual(turn.of("ApprovalAsked").length, 1)
      run.write(delegated("c", "wipe", { url }), delegated("d", "go", { url: "https://elsewhere.example" }))
      yield* turn.awaitTag("ApprovalAsked", 3)
      assert.strictEqual(wipe.runs.length, 0)
      yield* client.runs.cancel(conversation)
    })
  )

  it.effect("host trust does not hold for calls that a page started", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const go = counting("go", "action")
      const run = liveRun()
      backend.on("start", run.reply)
      const client = yield* startClient(backend, { tools: [go.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true, initiator: "page" })
      )
      run.write(delegated("a", "go", { url: "https://shop.example" }))
      yield* turn.awaitTag("ApprovalAsked", 1)
      yield* decide(client, "a", true, "conversation")
      yield* turn.awaitTag("CallFinished", 1)
      run.write(delegated("b", "go", { url: "https://shop.example" }))
      yield* turn.awaitTag("ApprovalAsked", 2)
      yield* client.runs.cancel(conversation)
    })
  )

  it.effect("an execution authorization is never run unasked, and comes with the question", () =>
    Effect.gen(function* () {
      const look = counting("look")
      const record = { kind: "payment", version: 1, action_digest: "d" }
      const { turn, client } = yield* turnOf([delegated("a", "look", {}, { execution_authorization: record })], {
        tools: [look.tool],
        mode: "act"
      })
      yield* turn.awaitTag("ApprovalAsked")
      yield* until("it is open", () => asks(client).length === 1)
      assert.deepStrictEqual(asks(client)[0]?.authorization, record)
      assert.strictEqual(look.runs.length, 0)
      yield* decide(client, "a", true)
      yield* turn.ended
      assert.strictEqual(look.runs.length, 1)
    })
  )

  it.effect("F-19 admin, platform, permission and group are checked at execution", () =>
    Effect.gen(function* () {
      const base = { parameters: Schema.Record(Schema.String, Schema.Unknown), run: () => Effect.succeed("ran") }
      const tools = [
        makeTool({ ...base, name: "admin", tier: "read", adminOnly: true }),
        makeTool({ ...base, name: "mac", tier: "read", platforms: ["darwin"] }),
        makeTool({ ...base, name: "history", tier: "read", permissions: ["history", "tabs"] }),
        makeTool({ ...base, name: "type", tier: "action" }),
        makeTool({ ...base, name: "peek", tier: "read" })
      ]
      const calls = [
        delegated("admin", "admin"),
        delegated("mac", "mac"),
        delegated("history", "history"),
        delegated("outside", "type", { tab_ids: [1, 9] }),
        delegated("inside", "type", { tab_id: 1 }),
        delegated("peek", "peek", { tab_id: 9 })
      ]
      const policy = {
        platform: "linux",
        permissions: Effect.succeed(new Set(["tabs"])),
        group: Effect.succeed(new Set([1, 2]))
      }
      const { turn, backend } = yield* turnOf(calls, { tools, mode: "act", policy })
      yield* turn.ended
      const given = results(backend)
      assert.match(given.admin.error_message, /restricted to admins/)
      assert.match(given.mac.error_message, /not supported/)
      assert.match(given.history.error_message, /permission history.*The user can grant it/)
      assert.match(given.outside.error_message, /Tab 9 is outside/)
      assert.isFalse(given.inside.is_error)
      assert.isFalse(given.peek.is_error)

      const granted = yield* turnOf(calls, {
        tools,
        mode: "act",
        policy: {
          ...policy,
          platform: "darwin",
          isAdmin: Effect.succeed(true),
          permissions: Effect.succeed(new Set(["tabs", "history"]))
        }
      })
      yield* granted.turn.ended
      for (const id of ["admin", "mac", "history"]) assert.isFalse(results(granted.backend)[id].is_error, id)
    })
  )

  it.effect("arguments are checked before anything else", () =>
    Effect.gen(function* () {
      const tool = makeTool({
        name: "add",
        tier: "privileged",
        tierFor: ({ n }) => (n > 10 ? "privileged" : "read"),
        parameters: Schema.Struct({ n: Schema.Int }),
        run: ({ n }) => Effect.succeed(n + 1)
      })
      const { turn, client, backend } = yield* turnOf(
        [
          delegated("wrong", "add", { n: "x" }),
          delegated("list", "add", [1]),
          delegated("small", "add", { n: 1 }),
          delegated("large", "add", { n: 11 })
        ],
        { tools: [tool] }
      )
      yield* turn.awaitTag("ApprovalAsked")
      assert.deepStrictEqual(
        turn.of("ApprovalAsked").map(({ callId }) => callId),
        [CallId.make("large")]
      )
      yield* decide(client, "large", true)
      yield* turn.ended
      const given = results(backend)
      assert.match(given.wrong.error_message, /arguments do not fit/)
      assert.match(given.list.error_message, /not an object/)
      assert.strictEqual(given.small.output, 2)
      assert.strictEqual(given.large.output, 12)
    })
  )

  it.effect("F-27 foreign calls are left alone and do not hold the turn's end", () =>
    Effect.gen(function* () {
      const look = counting("look")
      const canonical = {
        event: "tool_event",
        data: { event: "tool_delegated", call_id: "b", tool_name: "look", canonical_name: "matrx-local:look" }
      }
      const { turn, backend, client } = yield* turnOf(
        [delegated("a", "local_look"), canonical, delegated("c", "look", {}, { target_instance_id: "desk-2" })],
        { tools: [look.tool] }
      )
      assert.strictEqual(yield* turn.ended, "paused")
      assert.deepStrictEqual(
        turn.of("CallLeft").map(({ callId }) => String(callId)),
        ["a", "b", "c"]
      )
      assert.strictEqual(backend.to("tool_results").length, 0)
      assert.deepStrictEqual(look.runs, [])
      assert.deepStrictEqual(client.journal.entries(), [])
    })
  )

  it.effect("F-33 names are resolved through prefixes and old names", () =>
    Effect.gen(function* () {
      const [fill, click] = [counting("fill_form"), counting("click_element")]
      const { turn, backend } = yield* turnOf(
        [delegated("a", "forms__fill_form"), delegated("b", "matrx-extend:browser_click"), delegated("c", "fil_form")],
        { tools: [fill.tool, click.tool] }
      )
      yield* turn.ended
      assert.deepStrictEqual([fill.runs.length, click.runs.length], [1, 1])
      const given = results(backend)
      assert.strictEqual(given.a.tool_name, "forms__fill_form")
      assert.isTrue(given.c.is_error)
      assert.match(given.c.error_message, /No tool named fil_form/)
    })
  )

  it.effect("what a tool returns or fails with becomes its answer", () =>
    Effect.gen(function* () {
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      const behaviours: Record<string, Effect.Effect<unknown, unknown>> = {
        nothing: Effect.undefined,
        value: Effect.succeed({ a: [1] }),
        said: Effect.fail(new ToolFailure({ message: "no such row", output: { ok: false, reason: "missing" } })),
        threw: Effect.fail(new Error("broke")),
        died: Effect.die(new Error("a bug")),
        token: Effect.succeed({ ok: false, error: "not_found", secret: "s3cret" }),
        prose: Effect.succeed({ ok: false, error: "my password is hunter2" }),
        cyclic: Effect.succeed(cyclic),
        huge: Effect.succeed("x".repeat(2000)),
        quit: Effect.interrupt
      }
      const tools = Object.entries(behaviours).map(([name, run]) => counting(name, "read", () => run).tool)
      const { turn, backend } = yield* turnOf(
        Object.keys(behaviours).map((name) => delegated(name, name)),
        { tools, config: { maxResultLength: 1000 } }
      )
      yield* turn.ended
      const given = results(backend)
      assert.deepInclude(given.nothing, { output: null, is_error: false })
      assert.deepInclude(given.value, { output: { a: [1] }, is_error: false })
      assert.deepInclude(given.said, {
        output: { ok: false, reason: "missing" },
        is_error: true,
        error_message: "no such row"
      })
      assert.deepInclude(given.threw, { output: null, is_error: true, error_message: "broke" })
      assert.deepInclude(given.died, { is_error: true, error_message: "a bug" })
      assert.deepInclude(given.token, { output: { ok: false, reason: "not_found" }, is_error: true })
      assert.deepInclude(given.prose, { output: { ok: false, reason: "failed" }, error_message: "failed" })
      assert.match(given.cyclic.error_message, /not JSON/)
      assert.match(given.huge.error_message, /too long/)
      assert.match(given.quit.error_message, /interrupted/)
      assert.notInclude(JSON.stringify(given), "s3cret")
      assert.notInclude(JSON.stringify(given), "hunter2")
    })
  )

  it.effect("duration is the handler's, without the approval wait", () =>
    Effect.gen(function* () {
      const slow = counting("slow", "action", () => Effect.sleep("3 seconds"))
      const { turn, client, backend } = yield* turnOf([delegated("a", "slow")], { tools: [slow.tool] })
      yield* turn.awaitTag("ApprovalAsked")
      yield* until("it is open", () => asks(client).length === 1)
      yield* TestClock.adjust("1 minute")
      yield* decide(client, "a", true)
      yield* turn.awaitTag("CallStarted")
      yield* backend.fence
      yield* TestClock.adjust("3 seconds")
      yield* turn.ended
      assert.strictEqual(results(backend).a.duration_ms, 3000)
    })
  )

  it.effect("a tool with a time limit is stopped and answered", () =>
    Effect.gen(function* () {
      const tool = makeTool({
        name: "stuck",
        tier: "read",
        timeout: "2 minutes",
        parameters: Schema.Struct({}),
        run: () => Effect.never
      })
      const { turn, backend } = yield* turnOf([delegated("a", "stuck")], { tools: [tool] })
      yield* turn.awaitTag("CallStarted")
      yield* TestClock.adjust("2 minutes")
      yield* turn.ended
      assert.match(results(backend).a.error_message, /took too long/)
    })
  )

  it.effect("a slow approval does not hold back a fast call, nor the stream", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const [look, write] = [counting("look"), counting("write", "action")]
      const run = liveRun()
      backend.on("start", run.reply)
      const client = yield* startClient(backend, { tools: [look.tool, write.tool] })
      const turn = yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )
      run.write(delegated("a", "write"), delegated("b", "look"), { e: "c", t: "still talking" })
      yield* turn.awaitTag("CallSettled")
      assert.deepStrictEqual(Object.keys(results(backend)), ["b"])
      yield* until("text came through", () => turn.of("Stream").some(({ event }) => event._tag === "chunk"))
      yield* client.runs.cancel(conversation)
    })
  )
})
