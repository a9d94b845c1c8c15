/** Calls in the application, and how each of them ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { FrontendToolsError } from "../../src/client/FrontendToolsError.ts"
import type { CallContext, FrontendTool } from "../../src/client/promise.ts"
import { settle } from "../support/memorySocket.ts"
import { connectedClient, type ScriptedSocket } from "../support/scriptedSocket.ts"

type Execute = FrontendTool["execute"]

/** A connected client with one tool, `t`. */
const withTool = Effect.fnUntraced(function* (execute: Execute) {
  const scripted = yield* connectedClient()
  scripted.client.registerTools([{ name: "t", description: "", parametersSchema: { type: "object" }, execute }])
  yield* settle
  scripted.latest().accept()
  yield* settle
  return scripted
})

const call = (socket: ScriptedSocket, callId = "c1", args?: unknown) => {
  socket.say({ type: "call", callId, name: "t", args })
  return settle
}

/** The answer to one call. */
const answerOf = Effect.fnUntraced(function* (execute: Execute, args?: unknown) {
  const { latest } = yield* withTool(execute)
  yield* call(latest(), "c1", args)
  const answers = latest().take()
  assert.strictEqual(answers.length, 1)
  assert.deepInclude(answers[0], { type: "callResult", callId: "c1" })
  return answers[0]
})

const errorOf = (execute: Execute) => Effect.map(answerOf(execute), (answer) => answer?.error)

const never = () => new Promise(() => {})

describe("calls", () => {
  it.effect("get the arguments as they are and answer with the value", () =>
    Effect.gen(function* () {
      const echo = (args: unknown) => ({ got: args })
      assert.deepInclude(yield* answerOf(echo, { n: [1, null] }), { ok: true, result: { got: { n: [1, null] } } })
      assert.deepInclude(yield* answerOf(async (args) => args, null), { ok: true, result: null })
      assert.deepInclude(yield* answerOf(() => {}), { ok: true, result: null })
    })
  )

  it.effect("run all at once and answer in the order they end", () =>
    Effect.gen(function* () {
      const ends: Array<() => void> = []
      const { latest } = yield* withTool((_, { callId }) => new Promise((end) => ends.push(() => end(callId))))
      for (const id of ["1", "2", "3"]) latest().say({ type: "call", callId: id, name: "t" })
      yield* settle
      assert.strictEqual(ends.length, 3)
      for (const end of ends.toReversed()) end()
      yield* settle
      assert.deepStrictEqual(
        latest()
          .take()
          .map(({ callId, result }) => [callId, result]),
        [
          ["3", "3"],
          ["2", "2"],
          ["1", "1"]
        ]
      )
    })
  )

  it.effect("of a tool that is not there say so", () =>
    Effect.gen(function* () {
      const { latest } = yield* withTool(() => 1)
      for (const name of ["gone", "constructor", "__proto__"]) {
        latest().say({ type: "call", callId: "c1", name, args: {} })
        assert.deepStrictEqual(latest().take(), [
          {
            type: "callResult",
            callId: "c1",
            ok: false,
            error: { code: "unknown_tool", message: `no frontend tool named "${name}" is registered` }
          }
        ])
      }
    })
  )

  it.effect("keep the code and the message of a FrontendToolsError, of another copy of the package, too", () =>
    Effect.gen(function* () {
      const denied = { code: "denied", message: "not logged in" }
      const foreign = Object.assign(new Error("not logged in"), { name: "FrontendToolsError", code: "denied" })
      assert.deepStrictEqual(yield* errorOf(() => Promise.reject(foreign)), denied)
      assert.deepStrictEqual(
        yield* errorOf(() => {
          throw new FrontendToolsError("denied", "not logged in")
        }),
        denied
      )
    })
  )

  it.effect("whose handler throws something odd still answer in words", () =>
    Effect.gen(function* () {
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      class Element {}
      const thrown: ReadonlyArray<readonly [unknown, string]> = [
        [undefined, "the tool threw undefined"],
        [null, "the tool threw null"],
        [7n, "the tool threw 7n"],
        [cyclic, "the tool threw a value of type Object"],
        [new Element(), "the tool threw a value of type Element"],
        [Symbol("s"), "the tool threw Symbol(s)"],
        [new Error("no stock"), "no stock"]
      ]
      for (const [value, message] of thrown) {
        assert.deepStrictEqual(yield* errorOf(() => Promise.reject(value)), { code: "internal", message })
        assert.deepStrictEqual(
          yield* errorOf(() => {
            throw value
          }),
          { code: "internal", message }
        )
      }
    })
  )

  it.effect("whose result is not JSON say what is wrong and where", () =>
    Effect.gen(function* () {
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      for (const [result, fault] of [
        [{ price: 1n }, "result.price is a BigInt"],
        [cyclic, "result.self refers back to an object around it"],
        [{ tags: new Set() }, "result.tags is a Set, which has no JSON form"]
      ] as const) {
        assert.deepStrictEqual(yield* errorOf(() => result), {
          code: "internal",
          message: `the result is not JSON: ${fault}`
        })
      }
    })
  )

  it.effect("whose result is larger than the bridge reads say so instead", () =>
    Effect.gen(function* () {
      const error = yield* errorOf(() => "x".repeat(100_000))
      assert.deepInclude(error, { code: "internal" })
      assert.match(JSON.stringify(error), /the result is too large: 1000\d\d bytes, and the bridge reads 100000/)
      // A bridge that does not say how much it reads gets what fits into 16 MiB.
      const scripted = yield* withTool(() => "x".repeat(100_000))
      scripted.latest().drop()
      yield* TestClock.adjust("2 seconds")
      scripted.latest().welcome({})
      yield* settle
      scripted.latest().accept()
      yield* call(scripted.latest())
      assert.deepInclude(scripted.latest().take()[0], { ok: true })
    })
  )

  it.effect("with a thenable for a result wait for it", () =>
    Effect.gen(function* () {
      // biome-ignore lint/suspicious/noThenProperty: a value like this is what is tested.
      const thenable = { then: (resolve: (value: string) => void) => resolve("late") }
      assert.deepInclude(yield* answerOf(() => thenable), { ok: true, result: "late" })
    })
  )

  it.effect("whose tool was taken back meanwhile are answered all the same", () =>
    Effect.gen(function* () {
      let end = (_: string) => {}
      const { client, latest } = yield* withTool(() => new Promise((resolve) => (end = resolve)))
      yield* call(latest())
      client.unregisterTools(["t"])
      yield* settle
      latest().take()
      end("done")
      yield* settle
      assert.deepInclude(latest().take()[0], { callId: "c1", ok: true, result: "done" })
    })
  )
})

describe("calls that nobody waits for", () => {
  const waiting = Effect.gen(function* () {
    const calls: Array<CallContext> = []
    let end = (_: unknown) => {}
    const scripted = yield* withTool((_, call) => {
      calls.push(call)
      return new Promise((resolve) => {
        end = resolve
      })
    })
    yield* call(scripted.latest())
    const [context] = calls
    if (context === undefined) return assert.fail("was not called")
    return { ...scripted, context, end: (value: unknown) => end(value) }
  })

  it.effect.each([
    ["aborted", "AbortError", "the caller gave up"],
    ["timeout", "TimeoutError", "the call ran out of time"],
    ["revoked", "AbortError", "the call was revoked"],
    ["a newer reason", "AbortError", "the caller gave up"]
  ])("abort the signal when the bridge cancels them (%s)", ([reason, name, message]) =>
    Effect.gen(function* () {
      const { context, end, latest } = yield* waiting
      const { signal } = context
      const heard: Array<unknown> = []
      signal.addEventListener("abort", () => heard.push(signal.reason))
      assert.isFalse(signal.aborted)
      latest().say({ type: "cancel", callId: "c1", reason })
      // In the very callback that the frame came in.
      assert.strictEqual(heard.length, 1)
      assert.deepInclude(heard[0] as object, { name, message })
      end("too late")
      yield* settle
      assert.deepStrictEqual(latest().take(), [])
    })
  )

  it.effect("have an aborted signal also for who asks late, and each time the same one", () =>
    Effect.gen(function* () {
      const { context, latest } = yield* waiting
      latest().say({ type: "cancel", callId: "c1", reason: "aborted" })
      assert.isTrue(context.signal.aborted)
      assert.strictEqual(context.signal, context.signal)
    })
  )

  it.effect("are aborted by a drop, and what they return is not sent on any later line", () =>
    Effect.gen(function* () {
      const { context, end, latest } = yield* waiting
      const { signal } = context
      latest().drop()
      yield* settle
      assert.isTrue(signal.aborted)
      assert.strictEqual(signal.reason.message, "the connection to the bridge ended")
      yield* TestClock.adjust("2 seconds")
      latest().welcome()
      end("too late")
      yield* settle
      assert.isEmpty(latest().sent.filter(({ type }) => type === "callResult"))
    })
  )

  it.effect("may fail late, too", () =>
    Effect.gen(function* () {
      const { end, latest } = yield* waiting
      latest().drop()
      end(Promise.reject(new Error("late")))
      yield* settle
    })
  )

  it.effect("leave an answered call's signal alone", () =>
    Effect.gen(function* () {
      const { context, end, latest } = yield* waiting
      const { signal } = context
      end("in time")
      yield* settle
      latest().say({ type: "cancel", callId: "c1", reason: "aborted" })
      latest().drop()
      yield* settle
      assert.isFalse(signal.aborted)
    })
  )

  it.effect("end with the client", () =>
    Effect.gen(function* () {
      const { client, context } = yield* waiting
      const { signal } = context
      client.disconnect()
      assert.isTrue(signal.aborted)
    })
  )

  it.effect("are not begun: what an old socket or one of an ended client still says is not heard", () =>
    Effect.gen(function* () {
      let calls = 0
      const { client, latest } = yield* withTool(() => calls++)
      const old = latest()
      old.drop()
      yield* TestClock.adjust("2 seconds")
      latest().welcome()
      yield* settle
      latest().take()
      yield* call(old)
      // Nor is it an answer to what the new session asked for.
      old.say({ type: "registered", names: ["demo__stale"] })
      assert.strictEqual(client.state, "connected")
      client.disconnect()
      yield* call(latest())
      assert.strictEqual(calls, 0)
      assert.deepStrictEqual([...old.sent, ...latest().sent], [])
    })
  )

  it.effect("cost only themselves: the others go on", () =>
    Effect.gen(function* () {
      const { latest } = yield* withTool((args) => (args === "hang" ? never() : args))
      yield* call(latest(), "c1", "hang")
      yield* call(latest(), "c2", "go")
      assert.deepInclude(latest().take()[0], { callId: "c2", result: "go" })
    })
  )
})
