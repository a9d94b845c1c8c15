/** A chat with a person at a terminal, whose keys the test presses. */
import { assert, describe, it } from "@effect/vitest"
import { type Cause, Context, Effect, Fiber, Layer, Queue, Sink, Stdio, Stream } from "effect"
import { TestClock } from "effect/testing"
import { hostToolSource } from "../../src/aidream.ts"
import type { ApproveWrites } from "../../src/cli/chatApprovals.ts"
import { ChatInput } from "../../src/cli/chatInput.ts"
import { ChatOutput } from "../../src/cli/chatOutput.ts"
import { chat } from "../../src/cli/chatSession.ts"
import { MirrorRegistry } from "../../src/index.ts"
import { accepted, json, lines, refuse, startBackend, text } from "../aidream/support/Backend.ts"
import { startClient } from "../aidream/support/Client.ts"
import { answers, chunk, delegated, suspends } from "../aidream/support/events.ts"
import { until } from "../aidream/support/until.ts"
import { echoApplication } from "../support/echoApplication.ts"
import { memoryBridge, tool } from "../support/memoryBridge.ts"

/** A terminal, or what looks like a pipe. */
const makeTerminal = Effect.fnUntraced(function* (isTerminal: boolean) {
  const keys = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  let screen = ""
  let output = ""
  const writing = (take: (piece: string) => void) =>
    Sink.make<string | Uint8Array>()((pieces) =>
      Stream.runForEach(pieces, (piece) => Effect.sync(() => take(String(piece))))
    )
  const stdio = Stdio.layerTest({
    stdinIsTerminal: Effect.succeed(isTerminal),
    stdoutIsTerminal: Effect.succeed(isTerminal),
    stdin: Stream.fromQueue(keys),
    stdout: () =>
      writing((piece) => {
        output += piece
        screen += piece
      }),
    stderr: () =>
      writing((piece) => {
        screen += piece
      })
  })
  return {
    stdio,
    type: (typed: string) => Queue.offerUnsafe(keys, new TextEncoder().encode(typed)),
    hangUp: () => Queue.endUnsafe(keys),
    screen: () => screen,
    text: () => output,
    shows: (said: string) =>
      until(
        () => `the screen shows ${said}: ${screen}`,
        () => screen.includes(said)
      )
  }
})

const start = Effect.fnUntraced(function* (
  options: {
    readonly approveWrites?: ApproveWrites
    readonly message?: string
    readonly isTerminal?: boolean
    readonly conversation?: string
    readonly waitFor?: ReadonlyArray<string>
  } = {}
) {
  const backend = yield* startBackend
  const bridge = yield* Layer.build(memoryBridge())
  const application = yield* echoApplication("demo", { reads: ["look"], writes: ["put", "drop"] }).pipe(
    Effect.provide(bridge)
  )
  const client = yield* startClient(backend)
  yield* client.library.addSource(hostToolSource(Context.get(bridge, MirrorRegistry)))
  const terminal = yield* makeTerminal(options.isTerminal ?? true)
  backend.on("tool_results", accepted(true))
  backend.on("resume", lines(answers("Done.")))
  const run = chat({
    agent: "any",
    approveWrites: options.approveWrites ?? "ask",
    continued: options.conversation !== undefined,
    conversation: options.conversation ?? "conv-1",
    message: options.message,
    waitFor: options.waitFor ?? []
  }).pipe(
    Effect.provide(Layer.merge(ChatInput.layer({ messages: options.message === undefined }), ChatOutput.layer(false))),
    Effect.provide(terminal.stdio),
    Effect.provide(client.services),
    Effect.provide(bridge)
  )
  return { application, backend, run, terminal }
})

const called = (application: Effect.Success<ReturnType<typeof echoApplication>>, count: number) => {
  const names: Array<string> = []
  return Effect.as(
    until(
      () => `${count} calls reach the application: ${names}`,
      () => names.push(...application.answer()) > 0 && names.length >= count
    ),
    names
  )
}

const results = (body: {
  readonly results: ReadonlyArray<{ readonly tool_name: string; readonly error_message: string | null }>
}) => body.results.map(({ error_message, tool_name }) => [tool_name, error_message])

describe("a chat at a terminal", () => {
  it.effect("asks about a write, shows what it would do, and runs it after a yes", () =>
    Effect.gen(function* () {
      const { application, backend, run, terminal } = yield* start()
      backend.on("start", lines(suspends("req-1", chunk("I will."), delegated("a", "demo__put", { note: "a\u202eb" }))))
      const fiber = yield* Effect.forkScoped(run)
      yield* terminal.shows("> ")
      terminal.type("do it\n")
      yield* terminal.shows("y allows it")
      for (const said of ["Application: demo", "Tool: put (demo__put)", "a\\u202eb"])
        assert.include(terminal.screen(), said)
      terminal.type("what?\n")
      yield* terminal.shows("y or n:")
      assert.deepStrictEqual(application.answer(), [])
      terminal.type("y\n")
      assert.deepStrictEqual(yield* called(application, 1), ["put"])
      yield* terminal.shows("Done.")
      terminal.type("/quit\n")
      yield* Fiber.join(fiber)
      assert.strictEqual(terminal.text(), "I will.\nDone.\n")
    })
  )

  it.effect("F-14 lines typed ahead answer one question, never the next", () =>
    Effect.gen(function* () {
      const { application, backend, run, terminal } = yield* start()
      backend.on(
        "start",
        lines(
          suspends("req-1", delegated("a", "demo__put"), delegated("b", "demo__drop"), delegated("c", "demo__look"))
        )
      )
      const fiber = yield* Effect.forkScoped(run)
      terminal.type("do it\n")
      yield* terminal.shows("Tool: put")
      // A read is not held back by the question.
      assert.deepStrictEqual(yield* called(application, 1), ["look"])
      terminal.type("y\ny\ny\n")
      yield* terminal.shows("Tool: drop")
      assert.deepStrictEqual(yield* called(application, 1), ["put"])
      terminal.type("n\n")
      yield* terminal.shows("Done.")
      assert.deepStrictEqual(application.answer(), [])
      const denied = backend.to("tool_results").flatMap(({ body }) => results(body))
      assert.deepInclude(denied, ["demo__drop", "The user denied this call."])
      terminal.hangUp()
      yield* Fiber.join(fiber)
    })
  )

  it.effect("/cancel stops a turn, and the chat goes on", () =>
    Effect.gen(function* () {
      const { application, backend, run, terminal } = yield* start()
      backend.on("start", lines(suspends("req-1", delegated("a", "demo__look")), { "x-request-id": "run-1" }))
      backend.on("continue", lines(answers("Still here.")))
      const fiber = yield* Effect.forkScoped(run)
      terminal.type("look\n")
      yield* terminal.shows("suspended")
      terminal.type("are you there?\n")
      yield* terminal.shows("/cancel stops it")
      terminal.type("/cancel\n")
      yield* terminal.shows("the turn was cancelled")
      assert.deepStrictEqual(
        backend.to("cancel").map(({ url }) => url),
        ["/ai/cancel/run-1"]
      )
      terminal.type("hello\n")
      yield* terminal.shows("Still here.")
      assert.strictEqual(backend.to("resume").length, 0)
      application.frames()
      terminal.hangUp()
      yield* Fiber.join(fiber)
    })
  )

  it.effect("a model's text cannot steer the terminal", () =>
    Effect.gen(function* () {
      const { backend, run, terminal } = yield* start({ message: "hi" })
      backend.on("start", lines(answers("red \u001b[31m and\u0007\nnext")))
      yield* run
      assert.strictEqual(terminal.text(), "red \\u001b[31m and\\u0007\nnext\n")
    })
  )
})

describe("a chat without a terminal", () => {
  const piped = (approveWrites: ApproveWrites, extra: object = {}) =>
    Effect.gen(function* () {
      const { application, backend, run } = yield* start({ approveWrites, isTerminal: false, message: "hi" })
      backend.on("start", lines(suspends("req-1", delegated("a", "demo__put", {}, { ...extra }))))
      const fiber = yield* Effect.forkScoped(run)
      yield* until(
        "the call is decided",
        () => application.answer().length > 0 || backend.to("tool_results").length > 0
      )
      yield* Fiber.join(fiber)
      return backend.to("tool_results").flatMap(({ body }) => results(body))
    })

  it.effect("denies writes unless all may run", () =>
    Effect.gen(function* () {
      const denied = [["demo__put", "The user denied this call."]]
      assert.deepStrictEqual(yield* piped("ask"), denied)
      assert.deepStrictEqual(yield* piped("never"), denied)
      assert.deepStrictEqual(yield* piped("always"), [["demo__put", null]])
      // A call with an approval record of the backend needs a person whatever was said before.
      assert.deepStrictEqual(yield* piped("always", { execution_authorization: { kind: "k" } }), denied)
    })
  )

  it.effect("a turn that waits for another executor ends with 4, and so does a message on top of it", () =>
    Effect.gen(function* () {
      const { backend, run } = yield* start({ isTerminal: false, message: "hi" })
      backend.on("start", lines(suspends("req-1", delegated("a", "demo__look", {}, { target_instance_id: "desk" }))))
      const first = yield* Effect.flip(run)
      assert.deepInclude(first, { code: 4, message: "the turn is not over; it goes on with --conversation conv-1" })

      const second = yield* start({ isTerminal: false, message: "hi", conversation: "conv-1" })
      second.backend.on("resume", refuse(409, "outstanding_delegated_calls", { outstanding_call_ids: ["a"] }))
      second.backend.on("continue", refuse(409, "outstanding_delegated_calls", { outstanding_call_ids: ["a"] }))
      assert.deepInclude(yield* Effect.flip(second.run), { code: 4 })
    })
  )

  it.effect("a turn that was lost on the way is found again", () =>
    Effect.gen(function* () {
      const { backend, run, terminal } = yield* start({ isTerminal: false, message: "hi" })
      backend.on("start", lines([chunk("I beg")]))
      backend.on("pending_calls", text("not now", 502), json([]))
      backend.on("resume", lines(answers("in the middle.")))
      const fiber = yield* Effect.forkScoped(run)
      for (const seconds of [1, 2]) {
        yield* until(
          () => `attempt ${seconds} is announced`,
          () => terminal.screen().split("was lost").length > seconds
        )
        yield* TestClock.adjust(seconds * 500)
      }
      yield* Fiber.join(fiber)
      assert.strictEqual(terminal.text(), "I beg\nin the middle.\n")
      assert.include(terminal.screen(), "the connection was lost; trying to go on")
    })
  )

  it.effect("a call found again waits until its application is back, and not for ever", () =>
    Effect.gen(function* () {
      const pending = (name: string) =>
        json([{ id: "r", call_id: "a", conversation_id: "conv-9", tool_name: name, user_request_id: "req-1" }])
      const chat = yield* start({ isTerminal: false, message: "hi", conversation: "conv-9" })
      chat.backend.on("pending_calls", pending("demo__later"))
      chat.backend.on("continue", lines(answers("Hello.")))
      const fiber = yield* Effect.forkScoped(chat.run)
      yield* chat.terminal.shows("waiting for demo__later to come back")
      yield* TestClock.adjust("14 seconds")
      yield* chat.backend.fence
      assert.strictEqual(chat.backend.to("tool_results").length, 0)
      chat.application.say({ type: "register", tools: [tool("later", { readOnly: true })] })
      chat.application.frames()
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(yield* called(chat.application, 1), ["later"])
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(results(chat.backend.to("tool_results")[0]?.body), [["demo__later", null]])

      const gone = yield* start({ isTerminal: false, message: "hi", conversation: "conv-9" })
      gone.backend.on("pending_calls", pending("demo__never"))
      gone.backend.on("continue", lines(answers("Hello.")))
      const other = yield* Effect.forkScoped(gone.run)
      yield* gone.terminal.shows("waiting for demo__never to come back")
      yield* TestClock.adjust("15 seconds")
      yield* Fiber.join(other)
      assert.match(String(results(gone.backend.to("tool_results")[0]?.body)[0]?.[1]), /No tool named demo__never/)
    })
  )

  it.effect("waits for the applications it was told to wait for, and gives up after a minute", () =>
    Effect.gen(function* () {
      const { backend, run } = yield* start({ isTerminal: false, message: "hi", waitFor: ["shop"] })
      const fiber = yield* Effect.forkScoped(Effect.flip(run))
      yield* backend.fence
      yield* TestClock.adjust("60 seconds")
      assert.deepInclude(yield* Fiber.join(fiber), { code: 1, message: "shop did not connect" })
      assert.deepStrictEqual(backend.received, [])
    })
  )

  it.effect("a conversation that exists but never handed anything out just goes on", () =>
    Effect.gen(function* () {
      const { backend, run, terminal } = yield* start({ isTerminal: false, message: "hi", conversation: "conv-9" })
      backend.on("resume", refuse(404, "user_request_not_found"))
      backend.on("continue", lines(answers("Hello again.")))
      yield* run
      assert.strictEqual(terminal.text(), "Hello again.\n")
      assert.deepStrictEqual(
        backend.received.map(({ endpoint }) => endpoint),
        ["pending_calls", "pending_calls", "resume", "continue"]
      )
    })
  )
})
