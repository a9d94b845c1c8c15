import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import { AgentId, CallId, ConversationId, RunId, UserRequestId } from "../../../src/domain/aidream/Ids.ts"
import { ToolResultsRequest } from "../../../src/domain/aidream/ToolResults.ts"
import { Ledger, type NewCall, type RunKey, type Step } from "../../../src/layers/backend/Ledger.ts"
import { Refusal } from "../../../src/layers/backend/Refusal.ts"

const conversationId = ConversationId.make("6f6f1a34-0f2e-4a0f-8f0c-0f5b8c2f1a01")
const other = ConversationId.make("6f6f1a34-0f2e-4a0f-8f0c-0f5b8c2f1a02")

const id = (name: string) => CallId.make(name)

const decodeBody = Schema.decodeUnknownSync(ToolResultsRequest)

const open = (options?: {
  readonly owner?: string
  readonly conversation?: ConversationId
  readonly turn?: string
  readonly isNew?: boolean
}) =>
  Ledger.use((ledger) =>
    ledger.open({
      owner: options?.owner ?? "ada",
      conversationId: options?.conversation ?? conversationId,
      runId: RunId.make(`run-${options?.turn ?? "one"}-${options?.conversation ?? ""}`),
      userRequestId: UserRequestId.make(options?.turn ?? "one"),
      agentId: AgentId.make("agent"),
      isVersion: false,
      variables: { name: "Ada" },
      isNew: options?.isNew ?? true,
      message: { role: "user", content: [{ type: "text", text: "hello" }] },
      limits: { maxIterations: 100, maxRetries: 2 },
      metadata: {}
    })
  )

const call = (callId: string, more?: Partial<NewCall>): NewCall => ({
  id: `row-${callId}`,
  callId: id(callId),
  toolName: "page:look",
  calledName: "page__look",
  arguments: { at: 1 },
  executor: undefined,
  targetInstanceId: undefined,
  ...more
})

const step = (calls: ReadonlyArray<NewCall>, iteration = 1): Step => ({
  iteration,
  messageId: `message-${iteration}-${calls.map(({ callId }) => callId).join("-")}`,
  message: { role: "assistant", content: [] },
  calls,
  usage: { inputTokens: 3, outputTokens: 2 }
})

/** Hands calls out; the run has not written `paused` yet. */
const delegate = (run: RunKey, ...calls: ReadonlyArray<NewCall>) =>
  Ledger.use((ledger) =>
    ledger.delegate(
      run,
      calls.map(({ callId }) => callId),
      step(calls)
    )
  )

const pause = (run: RunKey) => Ledger.use((ledger) => ledger.pause(run, {}))

const claim = (turn = "one", runId = `resume-${turn}`, owner = "ada") =>
  Ledger.use((ledger) => ledger.claim(owner, conversationId, UserRequestId.make(turn), RunId.make(runId)))

const post = (
  results: ReadonlyArray<{ readonly call_id: string } & Readonly<Record<string, unknown>>>,
  options?: { readonly owner?: string; readonly instance?: string }
) =>
  Ledger.use((ledger) =>
    ledger.resolve(
      options?.owner ?? "ada",
      conversationId,
      decodeBody({
        results: results.map((result) => ({ tool_name: "x", ...result })),
        instance_id: options?.instance ?? null
      })
    )
  )

const answered = (...callIds: ReadonlyArray<string>) =>
  post(callIds.map((callId) => ({ call_id: callId, output: callId })))

const refusal = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.result(effect), (result) =>
    Result.isFailure(result) && result.failure instanceof Refusal ? result.failure : assert.fail("it was not refused")
  )

const pendingIds = Ledger.use((ledger) =>
  Effect.map(ledger.pendingCalls("ada", conversationId), (calls) => calls.map((each) => each.call_id as string))
)

const transcript = Ledger.use((ledger) => ledger.transcript(conversationId))

/**
 * What every ledger must do, whatever database is behind it. `layer` gives a fresh,
 * empty one for each test.
 */
export const ledgerSuite = <E>(name: string, layer: () => Layer.Layer<Ledger, E>) => {
  const check = (title: string, body: () => Effect.Effect<unknown, unknown, Ledger>) =>
    it.effect(title, () => Effect.suspend(body).pipe(Effect.provide(layer())))

  describe(`${name}: opening`, () => {
    check("keeps the message first and refuses the same conversation twice", () =>
      Effect.gen(function* () {
        yield* open()
        const { messages } = yield* transcript
        assert.deepStrictEqual(
          messages.map(({ position, role }) => [position, role]),
          [[0, "user"]]
        )
        assert.strictEqual((yield* refusal(open({ turn: "two" }))).code, "conversation_exists")
        assert.strictEqual((yield* refusal(open({ turn: "two", owner: "bob" }))).code, "conversation_exists")
        assert.strictEqual((yield* transcript).messages.length, 1)
      })
    )

    check("refuses a second turn while one is live, and while calls wait (Q4)", () =>
      Effect.gen(function* () {
        const run = yield* open()
        const inFlight = yield* refusal(open({ turn: "two", isNew: false }))
        assert.deepStrictEqual(
          [inFlight.status, inFlight.code, inFlight.details.retryable],
          [409, "run_in_flight", true]
        )
        yield* delegate(run, call("a"))
        yield* pause(run)
        const waiting = yield* refusal(open({ turn: "two", isNew: false }))
        assert.strictEqual(waiting.code, "outstanding_delegated_calls")
        assert.deepStrictEqual(waiting.details.outstanding_call_ids, ["a"])
        assert.strictEqual((yield* transcript).messages.length, 2)
        yield* answered("a")
        yield* open({ turn: "two", isNew: false })
      })
    )

    check("a conversation of somebody else is not there", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        const ledger = yield* Ledger
        const mine = { code: "conversation_not_found", status: 404 }
        for (const attempt of [
          open({ owner: "bob", turn: "two", isNew: false }),
          ledger.conversation("bob", conversationId),
          ledger.find("bob", conversationId, undefined),
          claim("one", "steal", "bob"),
          ledger.pendingCalls("bob", conversationId),
          post([{ call_id: "a", output: 1 }], { owner: "bob" })
        ]) {
          const { code, status } = yield* refusal<unknown, unknown, Ledger>(attempt)
          assert.deepStrictEqual({ code, status }, mine)
        }
        assert.strictEqual((yield* refusal(ledger.cancel("bob", run.runId))).code, "run_not_found")
        assert.deepStrictEqual(yield* ledger.userPendingCalls("bob", undefined), [])
        assert.deepStrictEqual(yield* pendingIds, ["a"])
      })
    )
  })

  describe(`${name}: continuation_needed (10.5)`, () => {
    const needed = (...callIds: ReadonlyArray<string>) =>
      Effect.map(answered(...callIds), ({ continuation_needed }) => continuation_needed)

    check("no call of the turn settled: not found at all", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        const unknown = yield* refusal(answered("zzz"))
        assert.deepStrictEqual([unknown.status, unknown.code], [404, "tool_calls_not_found"])
        assert.deepStrictEqual(unknown.details.not_found, ["zzz"])
      })
    )
    check("calls left: false, whatever the state", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"), call("b"), call("c"))
        assert.isFalse(yield* needed("a"))
        yield* pause(run)
        assert.isFalse(yield* needed("b"))
        assert.isTrue(yield* needed("c"))
      })
    )
    check("nothing left, paused: true, and true again when posted again", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        assert.isTrue(yield* needed("a"))
        const again = yield* post([{ call_id: "a", output: "another answer" }])
        assert.deepStrictEqual([again.resolved, again.already_resolved], [[], ["a"]])
        assert.isTrue(again.continuation_needed)
        assert.strictEqual((yield* transcript).calls.get("a")?.output, "a")
      })
    )
    check("nothing left, the delegating run still winds down: true", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        assert.isTrue(yield* needed("a"))
      })
    )
    check("nothing left, a later resume is live: false", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        assert.isTrue(yield* needed("a"))
        yield* claim()
        assert.isFalse(yield* needed("a"))
      })
    )
    check("a later resume that delegated itself: true for its own calls, false for older ones", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        yield* answered("a")
        const second = yield* claim()
        yield* ledger.delegate(second, [id("b")], step([call("b")], 2))
        yield* answered("b")
        assert.isFalse(yield* needed("a"))
        assert.isTrue(yield* needed("b"))
      })
    )
    check("terminal states: false", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        yield* answered("a")
        const second = yield* claim()
        yield* ledger.finish(second, { status: "completed", step: step([], 2), metadata: {} })
        assert.isFalse(yield* needed("a"))
      })
    )
    check("answers to two turns in one post: the newest that needs it", () =>
      Effect.gen(function* () {
        const one = yield* open()
        yield* delegate(one, call("a"))
        yield* pause(one)
        yield* answered("a")
        const two = yield* open({ turn: "two", isNew: false })
        yield* delegate(two, call("b"))
        yield* pause(two)
        assert.strictEqual((yield* answered("a")).user_request_id, "one")
        const both = yield* answered("a", "b")
        assert.deepStrictEqual([both.continuation_needed, both.user_request_id], [true, "two"])
      })
    )
  })

  describe(`${name}: results`, () => {
    check("every id is in one list; the first of two answers to one call counts", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"), call("b"))
        yield* pause(run)
        const done = yield* post([
          { call_id: "a", output: 1, duration_ms: 12 },
          { call_id: "a", output: 2 },
          { call_id: "nope", output: 3 },
          { call_id: "b", is_error: true, error_message: "broken" }
        ])
        assert.deepStrictEqual(done.resolved, ["a", "b"])
        assert.deepStrictEqual(done.already_resolved, ["a"])
        assert.deepStrictEqual(done.not_found, ["nope"])
        const { calls } = yield* transcript
        assert.strictEqual(calls.get("a")?.output, 1)
        assert.deepStrictEqual([calls.get("b")?.status, calls.get("b")?.errorMessage], ["error", "broken"])
      })
    )

    check("F-28: only the targeted desktop may answer its call; the others' answer changes nothing", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a", { executor: "matrx-local", targetInstanceId: "desk" }))
        yield* pause(run)
        assert.strictEqual((yield* refusal(answered("a"))).code, "tool_calls_not_found")
        assert.strictEqual(
          (yield* refusal(post([{ call_id: "a", output: 1 }], { instance: "other" }))).code,
          "tool_calls_not_found"
        )
        assert.deepStrictEqual((yield* post([{ call_id: "a", output: 1 }], { instance: "desk" })).resolved, ["a"])
      })
    )

    check("a call the server runs cannot be answered from outside", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* ledger.step(run, step([call("a")]))
        assert.strictEqual((yield* refusal(answered("a"))).code, "tool_calls_not_found")
      })
    )

    check("F-29: a claimed row is one desktop's until its claim lapses", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* delegate(run, call("a", { executor: "matrx-local" }), call("b"))
        yield* pause(run)
        const claimed = (instance: string) =>
          Effect.map(ledger.userPendingCalls("ada", instance), (calls) => calls.map((each) => each.call_id as string))
        assert.deepStrictEqual(yield* claimed("one"), ["a"])
        assert.deepStrictEqual(yield* claimed("two"), [])
        yield* TestClock.adjust("50 seconds")
        assert.deepStrictEqual(yield* claimed("one"), ["a"])
        yield* TestClock.adjust("50 seconds")
        assert.deepStrictEqual(yield* claimed("two"), [])
        yield* TestClock.adjust("61 seconds")
        assert.deepStrictEqual(yield* claimed("two"), ["a"])
        const instances = yield* ledger.desktopInstances("ada")
        assert.deepStrictEqual(
          instances.map((each) => [each.id, each.live]),
          [
            ["one", false],
            ["two", true]
          ]
        )
        assert.strictEqual((yield* ledger.userPendingCalls("ada", undefined)).length, 2)
      })
    )
  })

  describe(`${name}: claiming (10.8)`, () => {
    check("F-03: of ten claims at once one wins, the others meet a conflict", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        yield* answered("a")
        const claims = yield* Effect.forEach(
          Array.from({ length: 10 }, (_, index) => index),
          (index) => Effect.result(claim("one", `resume-${index}`)),
          { concurrency: "unbounded" }
        )
        const won = claims.filter(Result.isSuccess)
        assert.strictEqual(won.length, 1)
        assert.strictEqual(won[0]?.success.generation, 2)
        for (const lost of claims.filter(Result.isFailure)) {
          assert.strictEqual(lost.failure._tag === "Refusal" ? lost.failure.code : "", "resume_conflict")
        }
      })
    )

    check("refuses in the order of the contract", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        assert.strictEqual((yield* refusal(claim("nope"))).code, "user_request_not_found")
        const live = yield* refusal(claim())
        assert.deepStrictEqual(
          [live.code, live.details.status, live.details.retryable],
          ["resume_conflict", "processing", true]
        )
        yield* delegate(run, call("a"))
        assert.strictEqual((yield* refusal(claim())).code, "outstanding_delegated_calls")
        yield* pause(run)
        assert.strictEqual((yield* refusal(claim())).code, "outstanding_delegated_calls")
        yield* answered("a")
        const second = yield* claim()
        yield* ledger.finish(second, { status: "failed", step: undefined, metadata: {} })
        const over = yield* refusal(claim())
        assert.deepStrictEqual(
          [over.code, over.details.status, over.details.retryable],
          ["not_resumable", "failed", false]
        )
      })
    )

    check("F-44: the named turn is resumed; without a name the one answered last", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const one = yield* open()
        yield* delegate(one, call("a"))
        yield* pause(one)
        yield* answered("a")
        yield* TestClock.adjust("1 second")
        const two = yield* open({ turn: "two", isNew: false })
        yield* delegate(two, call("b"))
        yield* pause(two)
        yield* answered("b")
        const named = yield* ledger.find("ada", conversationId, UserRequestId.make("one"))
        assert.strictEqual(named.userRequestId, "one")
        assert.strictEqual((yield* ledger.find("ada", conversationId, undefined)).userRequestId, "two")
        yield* claim("one")
        // One run per conversation: the other turn waits until this one has paused or ended.
        assert.strictEqual((yield* refusal(claim("two"))).code, "resume_conflict")
      })
    )

    check("a turn without any delegated call is found too, after its process died", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        yield* open()
        yield* TestClock.adjust("61 seconds")
        assert.strictEqual((yield* ledger.find("ada", conversationId, undefined)).userRequestId, "one")
        yield* claim()
      })
    )
  })

  describe(`${name}: leases`, () => {
    check("a silent run loses its turn after its lease, and can write nothing after", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* ledger.step(run, step([call("s")]))
        yield* TestClock.adjust("59 seconds")
        assert.strictEqual((yield* refusal(claim())).code, "resume_conflict")
        yield* TestClock.adjust("2 seconds")
        const next = yield* claim()
        assert.strictEqual(next.generation, 2)
        const { calls } = yield* transcript
        assert.deepStrictEqual([calls.get("s")?.status, calls.get("s")?.errorType], ["error", "abandoned"])
        const outcome = { isError: false, output: 1, errorType: undefined, errorMessage: undefined }
        for (const late of [
          ledger.renew(run),
          ledger.step(run, step([], 2)),
          ledger.settle(run, id("s"), outcome, { durationMillis: 1, loadedTools: [] }),
          ledger.delegate(run, [], step([call("t")], 2)),
          ledger.pause(run, {}),
          ledger.finish(run, { status: "completed", step: undefined, metadata: {} })
        ]) {
          const lost = yield* Effect.flip(late)
          assert.strictEqual(lost._tag, "RunLost")
        }
        yield* ledger.release(run)
        assert.strictEqual((yield* transcript).messages.length, 2)
        yield* ledger.renew(next)
      })
    )

    check("renewing keeps it", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        for (let beat = 0; beat < 10; beat++) {
          yield* TestClock.adjust("30 seconds")
          yield* ledger.renew(run)
        }
        assert.strictEqual((yield* refusal(claim())).code, "resume_conflict")
      })
    )

    check("a run that died between handing out and `paused` is resumable within a client's patience", () =>
      Effect.gen(function* () {
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* answered("a")
        assert.strictEqual((yield* refusal(claim())).code, "resume_conflict")
        yield* TestClock.adjust("6 seconds")
        yield* claim()
      })
    )

    check("a released turn can be claimed at once", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* ledger.release(run)
        yield* claim()
      })
    )
  })

  describe(`${name}: sweeping`, () => {
    check("pauses lapsed turns and abandons what they ran", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* ledger.step(run, step([call("s")]))
        const quiet = yield* open({ conversation: other, turn: "elsewhere" })
        yield* TestClock.adjust("40 seconds")
        yield* ledger.renew(quiet)
        yield* TestClock.adjust("30 seconds")
        assert.deepStrictEqual(yield* ledger.sweep, { expiredCalls: 0, lapsedRuns: 1, abandonedCalls: 0 })
        assert.strictEqual((yield* transcript).calls.get("s")?.errorType, "abandoned")
        assert.deepStrictEqual(yield* ledger.sweep, { expiredCalls: 0, lapsedRuns: 0, abandonedCalls: 0 })
        yield* ledger.renew(quiet)
      })
    )

    check("expires delegated calls; the real answer still supersedes", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        yield* TestClock.adjust("29 days")
        assert.strictEqual((yield* ledger.sweep).expiredCalls, 0)
        yield* TestClock.adjust("2 days")
        assert.strictEqual((yield* ledger.sweep).expiredCalls, 1)
        assert.deepStrictEqual(yield* pendingIds, [])
        assert.strictEqual((yield* transcript).calls.get("a")?.errorType, "client_tool_timeout")
        const late = yield* answered("a")
        assert.deepStrictEqual([late.resolved, late.continuation_needed], [["a"], true])
        assert.strictEqual((yield* transcript).calls.get("a")?.output, "a")
        assert.deepStrictEqual((yield* answered("a")).already_resolved, ["a"])
      })
    )
  })

  describe(`${name}: cancelling`, () => {
    check("ends the turn, settles its calls, and lets the conversation go on", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* delegate(run, call("a"))
        yield* pause(run)
        assert.deepStrictEqual(yield* ledger.cancel("ada", run.runId), {
          status: "cancelled",
          userRequestId: run.userRequestId
        })
        assert.strictEqual((yield* transcript).calls.get("a")?.errorType, "cancelled")
        assert.strictEqual((yield* refusal(claim())).code, "not_resumable")
        assert.isFalse((yield* answered("a")).continuation_needed)
        assert.strictEqual((yield* ledger.cancel("ada", run.runId)).status, "cancelled")
        yield* open({ turn: "two", isNew: false })
      })
    )

    check("takes the turn away from a live run; a finished turn stays finished", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* ledger.cancel("ada", run.runId)
        const lost = yield* Effect.flip(ledger.step(run, step([])))
        assert.deepStrictEqual(lost._tag === "RunLost" ? lost.status : "", "cancelled")
        const two = yield* open({ turn: "two", isNew: false })
        yield* ledger.finish(two, { status: "completed", step: undefined, metadata: {} })
        assert.strictEqual((yield* ledger.cancel("ada", two.runId)).status, "completed")
      })
    )
  })

  describe(`${name}: the turn`, () => {
    check("remembers loaded tools and usage over its runs", () =>
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const run = yield* open()
        yield* ledger.step(run, step([call("s"), call("t")]))
        const outcome = { isError: false, output: null, errorType: undefined, errorMessage: undefined }
        yield* ledger.settle(run, id("s"), outcome, { durationMillis: 4, loadedTools: ["fill", "submit"] })
        yield* ledger.settle(run, id("t"), outcome, { durationMillis: 4, loadedTools: ["submit", "clear"] })
        const found = yield* ledger.find("ada", conversationId, run.userRequestId)
        assert.deepStrictEqual(found.loadedTools, ["fill", "submit", "clear"])
        assert.deepStrictEqual([found.iteration, found.variables], [1, { name: "Ada" }])
      })
    )
  })
}
