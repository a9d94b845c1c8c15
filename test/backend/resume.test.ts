import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Ledger } from "../../src/layers/backend/Ledger.ts"
import type { ScriptedAnswer, ScriptedRequest } from "../../src/layers/backend/ScriptedModel.ts"
import {
  accepted,
  answer,
  database,
  delegatedIds,
  inline,
  lastResults,
  make,
  next,
  outline,
  pending,
  refusal,
  requestIdOf,
  rest,
  resume,
  start,
  textOf,
  until,
  uuid
} from "./support/backend.ts"

const tools = [inline("look")]

const lookThenTell = ({ prompt, step }: ScriptedRequest): ScriptedAnswer =>
  step === 0 ? { calls: [{ tool: "look", id: "c0" }] } : { text: lastResults(prompt) }

/** A ledger whose `paused` is written when the test lets it. */
const latePause = Effect.gen(function* () {
  const reached = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  const wrapLedger = (ledger: Ledger["Service"]): Ledger["Service"] => ({
    ...ledger,
    pause: (run, metadata) =>
      Deferred.succeed(reached, undefined).pipe(
        Effect.andThen(Deferred.await(release)),
        Effect.andThen(ledger.pause(run, metadata))
      )
  })
  return { reached, release, wrapLedger }
})

describe("resume", () => {
  it.effect("F-03: ten resumes at once give one run; the others are told to try again", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: lookThenTell })
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools }))
      yield* answer(backend, id, [{ call_id: "c0", output: "x" }])
      const answers = yield* Effect.all(
        Array.from({ length: 10 }, () => resume(backend, id, { tools })),
        { concurrency: "unbounded" }
      )
      const won = answers.filter(({ status }) => status === 200)
      assert.strictEqual(won.length, 1)
      for (const lost of answers.filter(({ status }) => status !== 200).map(refusal)) {
        // A late one may find the turn over already.
        assert.include(["resume_conflict", "not_resumable"], lost.code)
        assert.strictEqual(lost.retryable, lost.code === "resume_conflict")
      }
      for (const each of won) assert.strictEqual(textOf(yield* rest(each)), 'look:"x"')
      const positions = yield* backend.sql`SELECT position FROM messages ORDER BY position`
      assert.deepStrictEqual(
        positions.map(({ position }) => position),
        [0, 1, 2]
      )
    })
  )

  it.effect(
    "F-05, row 4: an answer that beats `paused` is invited to resume, meets a conflict, then gets through",
    () =>
      Effect.gen(function* () {
        const { reached, release, wrapLedger } = yield* latePause
        const backend = yield* make({ model: lookThenTell, wrapLedger })
        const id = uuid()
        const opened = yield* start(backend, id, { tools })
        yield* Deferred.await(reached)
        const posted = accepted(yield* answer(backend, id, [{ call_id: "c0", output: 1 }]))
        assert.isTrue(posted.continuation_needed)
        const early = refusal(yield* resume(backend, id, { tools }))
        assert.deepStrictEqual(
          [early.status, early.code, early.retryable, early.runStatus],
          [409, "resume_conflict", true, "processing"]
        )
        yield* Deferred.succeed(release, undefined)
        assert.include(outline(yield* rest(opened)), "end complete")
        const later = yield* resume(backend, id, { tools, user_request_id: posted.user_request_id })
        assert.strictEqual(textOf(yield* rest(later)), "look:1")
      })
  )

  it.effect("answers racing the suspension always leave exactly one continuation", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: ({ prompt, step }) =>
          step === 0
            ? { calls: [0, 1, 2, 3].map((index) => ({ tool: "look", id: `c${index}` })) }
            : { text: lastResults(prompt) }
      })
      const id = uuid()
      const opened = yield* start(backend, id, { tools })
      const posts: Array<Effect.Effect<boolean, never, Scope.Scope>> = []
      // Each call is answered the moment it is announced.
      while (true) {
        const event = yield* next(opened)
        if (event === "closed") break
        if (event._tag === "tool_event" && event.data.event === "tool_delegated") {
          const callId = event.data.call_id
          posts.push(
            Effect.map(
              answer(backend, id, [{ call_id: callId, output: callId }]),
              (posted) => accepted(posted).continuation_needed
            )
          )
        }
      }
      const invited = yield* Effect.all(posts, { concurrency: "unbounded" })
      assert.strictEqual(invited.filter(Boolean).length, 1)
      const events = yield* rest(yield* resume(backend, id, { tools }))
      assert.strictEqual(textOf(events), 'look:"c0" look:"c1" look:"c2" look:"c3"')
    })
  )

  it.effect("F-12: calls left unanswered are named, and nothing changes", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: () => ({
          calls: [
            { tool: "look", id: "a" },
            { tool: "look", id: "b" }
          ]
        })
      })
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools }))
      yield* answer(backend, id, [{ call_id: "a" }])
      const early = refusal(yield* resume(backend, id, { tools }))
      assert.deepStrictEqual(
        [early.code, early.outstandingCallIds, early.retryable],
        ["outstanding_delegated_calls", ["b"], false]
      )
      assert.deepStrictEqual(
        pending(yield* backend.get(`/ai/conversations/${id}/pending_calls`)).map((call) => call.call_id as string),
        ["b"]
      )
    })
  )

  it.effect("F-06: the model of a resume sees the context of the resume", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const backend = yield* make({
        agents: { any: { instructions: "You help {{name}}.", tools: [] } },
        model: (request) => {
          const first = request.prompt.content[0]
          seen.push(first?.role === "system" ? first.content : "")
          return lookThenTell(request)
        }
      })
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools, variables: { name: "Ada" }, context: { page: "one" } }))
      yield* answer(backend, id, [{ call_id: "c0" }])
      yield* rest(yield* resume(backend, id, { tools, context: { page: "two" } }))
      assert.match(seen[0]!, /^You help Ada\.\n\nContext:\n\{\n {2}"page": "one"\n\}$/)
      assert.match(seen[1]!, /^You help Ada\.\n\nContext:\n\{\n {2}"page": "two"\n\}$/)
    })
  )

  it.effect("a broken envelope is refused before the claim: the turn stays paused", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: lookThenTell })
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools }))
      yield* answer(backend, id, [{ call_id: "c0", output: 1 }])
      const broken = refusal(yield* resume(backend, id, { client: { capabilities: ["nope"] } }))
      assert.deepStrictEqual([broken.status, broken.code], [422, "client_capability_resolution_failed"])
      const [turn] = yield* backend.sql`SELECT status, generation FROM user_requests`
      assert.deepStrictEqual({ ...turn }, { status: "paused", generation: 1 })
      assert.strictEqual(textOf(yield* rest(yield* resume(backend, id, { tools }))), "look:1")
    })
  )

  it.effect("F-44: of two paused turns the named one continues", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: ({ prompt, step, userText }) =>
          step === 0 ? { calls: [{ tool: "look", id: userText }] } : { text: `${userText}: ${lastResults(prompt)}` }
      })
      const id = uuid()
      const one = requestIdOf(yield* rest(yield* start(backend, id, { tools, user_input: "one" })))
      yield* answer(backend, id, [{ call_id: "one", output: 1 }])
      yield* TestClock.adjust("1 second")
      const opened = yield* backend.post(`/ai/conversations/${id}`, { user_input: "two", tools })
      const two = requestIdOf(yield* rest(opened))
      assert.notStrictEqual(one, two)
      yield* answer(backend, id, [{ call_id: "two", output: 2 }])
      assert.strictEqual(requestIdOf(yield* rest(yield* resume(backend, id, { tools, user_request_id: one }))), one)
      assert.strictEqual(requestIdOf(yield* rest(yield* resume(backend, id, { tools }))), two)
    })
  )

  it.effect("two backends on one database: a turn started on one is answered and resumed on the other", () =>
    Effect.gen(function* () {
      const shared = yield* database
      const left = yield* make({ model: lookThenTell }, shared)
      const right = yield* make({ model: lookThenTell }, shared)
      const id = uuid()
      yield* rest(yield* start(left, id, { tools }))
      assert.isTrue(accepted(yield* answer(right, id, [{ call_id: "c0", output: 7 }])).continuation_needed)
      assert.strictEqual(textOf(yield* rest(yield* resume(right, id, { tools }))), "look:7")
      assert.strictEqual(refusal(yield* resume(left, id, { tools })).code, "not_resumable")
    })
  )

  it.effect("a backend that shuts down gives its turns back, and another one finishes them", () =>
    Effect.gen(function* () {
      const shared = yield* database
      const scope = yield* Scope.make()
      const thinking = yield* Deferred.make<void>()
      const first = yield* make(
        {
          model: () => {
            Deferred.doneUnsafe(thinking, Effect.void)
            return { text: "too late", delay: 60_000 }
          }
        },
        shared
      ).pipe(Scope.provide(scope))
      const id = uuid()
      const opened = yield* start(first, id)
      yield* Deferred.await(thinking)
      yield* Scope.close(scope, Exit.void)
      // No end event: the reader must not take the turn for finished.
      assert.deepStrictEqual(outline(yield* rest(opened)), [])
      const second = yield* make({ model: () => ({ text: "here" }) }, shared)
      assert.strictEqual(textOf(yield* rest(yield* resume(second, id))), "here")
    })
  )

  it.effect("a run that lost its turn stops writing and says so", () =>
    Effect.gen(function* () {
      const shared = yield* database
      const stuck = yield* Deferred.make<void>()
      const left = yield* make(
        {
          model: () => {
            Deferred.doneUnsafe(stuck, Effect.void)
            return { text: "from the past", delay: 600_000 }
          },
          wrapLedger: (ledger) => ({ ...ledger, renew: () => Effect.void })
        },
        shared
      )
      const id = uuid()
      const opened = yield* start(left, id)
      yield* Deferred.await(stuck)
      yield* TestClock.adjust("61 seconds")
      const right = yield* make({ model: () => ({ text: "now" }) }, shared)
      assert.strictEqual(textOf(yield* rest(yield* resume(right, id))), "now")
      yield* TestClock.adjust("600 seconds")
      assert.deepStrictEqual(outline(yield* rest(opened)).slice(-3), [
        "error run_superseded",
        "completion failed",
        "end failed"
      ])
      const messages = yield* left.sql`SELECT role, content FROM messages ORDER BY position`
      assert.strictEqual(messages.length, 2)
      assert.include(String(messages[1]?.content), "now")
    })
  )
})

describe("continuing a conversation", () => {
  it.effect("needs input or a retry; a retry runs the saved state again", () =>
    Effect.gen(function* () {
      let failures = 1
      const backend = yield* make({
        model: ({ prompt }) =>
          failures-- > 0 ? { fail: "down" } : { text: prompt.content.map(({ role }) => role).join(",") },
        config: { providerBackoff: 0 }
      })
      const id = uuid()
      const failed = yield* rest(yield* start(backend, id, { max_retries_per_iteration: 0 }))
      assert.deepStrictEqual(outline(failed), ["error provider_error", "completion failed", "end failed"])
      for (const body of [{}, { user_input: "" }, { user_input: null, retry: false }]) {
        const { code, status } = refusal(yield* backend.post(`/ai/conversations/${id}`, body))
        assert.deepStrictEqual([status, code], [422, "user_input_required"])
      }
      const again = yield* rest(yield* backend.post(`/ai/conversations/${id}`, { retry: true }))
      assert.strictEqual(textOf(again), "user")
      const third = yield* rest(
        yield* backend.post(`/ai/conversation/${id}`, { user_input: [{ type: "text", text: "and?" }] })
      )
      assert.strictEqual(textOf(third), "user,assistant,user")
    })
  )

  it.effect("F-40: a new message on a suspended turn is refused with the calls that wait", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: lookThenTell })
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools }))
      const refused = refusal(yield* backend.post(`/ai/conversations/${id}`, { user_input: "and now?" }))
      assert.deepStrictEqual(
        [refused.status, refused.code, refused.outstandingCallIds],
        [409, "outstanding_delegated_calls", ["c0"]]
      )
      assert.strictEqual((yield* backend.sql`SELECT id FROM messages`).length, 2)
    })
  )

  it.effect("a live run of the conversation refuses a second one", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: () => ({ text: "hm", delay: 1000 }) })
      const id = uuid()
      const opened = yield* start(backend, id)
      const refused = refusal(yield* backend.post(`/ai/conversations/${id}`, { user_input: "faster" }))
      assert.deepStrictEqual([refused.status, refused.code, refused.retryable], [409, "run_in_flight", true])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(textOf(yield* rest(opened)), "hm")
    })
  )
})

describe("cancel", () => {
  it.effect("stops a live run; the turn is over", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: () => ({ text: "never", delay: 60_000 }) })
      const id = uuid()
      const opened = yield* start(backend, id)
      yield* until(opened, (event) => event._tag === "init")
      const cancelled = yield* backend.post(`/ai/cancel/${opened.headers["x-request-id"]}`, undefined)
      assert.deepStrictEqual(JSON.parse(cancelled.text), { status: "cancelled" })
      assert.deepStrictEqual(outline(yield* rest(opened)), ["completion cancelled", "end cancelled"])
      const over = refusal(yield* resume(backend, id))
      assert.deepStrictEqual([over.code, over.runStatus], ["not_resumable", "cancelled"])
    })
  )

  it.effect("settles the calls of a suspended turn, and the next message is welcome", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: lookThenTell })
      const id = uuid()
      const opened = yield* start(backend, id, { tools })
      yield* rest(opened)
      yield* backend.post(`/api/ai/cancel/${opened.headers["x-request-id"]}`, undefined)
      const posted = accepted(yield* answer(backend, id, [{ call_id: "c0", output: 1 }]))
      assert.deepStrictEqual([posted.already_resolved, posted.continuation_needed], [["c0"], false])
      const after = yield* rest(yield* backend.post(`/ai/conversations/${id}`, { user_input: "go on", tools }))
      assert.deepStrictEqual(delegatedIds(after), ["c0-2"])
    })
  )

  it.effect("a run of another process notices at its next heartbeat", () =>
    Effect.gen(function* () {
      const shared = yield* database
      const left = yield* make({ model: () => ({ text: "never", delay: 600_000 }) }, shared)
      const right = yield* make({}, shared)
      const opened = yield* start(left, uuid())
      yield* until(opened, (event) => event._tag === "init")
      yield* right.post(`/ai/cancel/${opened.headers["x-request-id"]}`, undefined)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(outline(yield* rest(opened)).slice(-2), ["completion cancelled", "end cancelled"])
    })
  )
})
