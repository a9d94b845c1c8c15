import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { readTool, writeTool } from "../../support/hostTools.ts"
import { initialize, modernMeta } from "../../support/McpWire.ts"
import { call, canAsk, errorText, start } from "../../support/mcpHost.ts"

const parametersSchema = {
  type: "object",
  properties: { item: { type: "string" } },
  required: ["item"]
}

/** A host with the write tool `shop__put` in a scope of its own, and what that tool wrote. */
const withPut = Effect.fnUntraced(function* (options: Parameters<typeof start>[0] = {}) {
  const started = yield* start(options)
  const written: Array<unknown> = []
  const register = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const put = writeTool("put", (args) => Effect.sync(() => written.push(args)), { parametersSchema })
    yield* started.host.register(put).pipe(Scope.provide(scope))
    return scope
  })
  return { ...started, written, register, scope: yield* register }
})

describe("McpApproval in a session", () => {
  it.effect("asks for each call anew, showing what will run", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      yield* initialize(wire, { capabilities: canAsk })
      for (const item of ["milk", "milk"]) {
        const calling = yield* Effect.forkChild(call(wire, "shop__put", { item }))
        const question = yield* Queue.take(wire.incoming)
        assert.strictEqual(question.method, "elicitation/create")
        assert.deepStrictEqual(question.params.requestedSchema, { type: "object", properties: {} })
        for (const part of ["Application: shop", "Tool: put (shop__put)", '"item": "milk"']) {
          assert.include(question.params.message, part)
        }
        yield* wire.respond(question.id, { action: "accept", content: {} })
        assert.deepStrictEqual(yield* Fiber.join(calling), {
          content: [{ type: "text", text: String(written.length) }]
        })
      }
      assert.deepStrictEqual(written, [{ item: "milk" }, { item: "milk" }])
    })
  )

  it.effect("runs nothing when the person declines or closes the question", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      yield* initialize(wire, { capabilities: canAsk })
      const texts: Array<unknown> = []
      for (const action of ["decline", "cancel"]) {
        const calling = yield* Effect.forkChild(call(wire, "shop__put", { item: "milk" }))
        yield* wire.respond((yield* Queue.take(wire.incoming)).id, { action })
        texts.push(yield* Fiber.join(calling))
      }
      assert.deepStrictEqual(texts, [
        errorText('the user rejected tool "shop__put"'),
        errorText('the question whether tool "shop__put" may run was closed without an answer')
      ])
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("runs nothing when the client fails to ask", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      yield* initialize(wire, { capabilities: canAsk })
      const calling = yield* Effect.forkChild(call(wire, "shop__put", { item: "milk" }))
      yield* wire.fail((yield* Queue.take(wire.incoming)).id, "no screen")
      assert.deepStrictEqual(
        yield* Fiber.join(calling),
        errorText('the MCP client failed to ask whether tool "shop__put" may run')
      )
      assert.deepStrictEqual(written, [])
    })
  )

  for (const [title, options] of [
    ["without elicitation", {}],
    ["that only opens links", { capabilities: { elicitation: { url: {} } } }],
    ["of a revision before elicitation", { capabilities: canAsk, protocolVersion: "2025-03-26" }]
  ] as const) {
    it.effect(`refuses a client ${title}, and says what to do`, () =>
      Effect.gen(function* () {
        const { wire, written } = yield* withPut()
        yield* initialize(wire, options)
        const result = yield* call(wire, "shop__put", { item: "milk" })
        assert.isTrue(result.isError)
        assert.match(result.content[0].text, /^Error: tool "shop__put" writes, .* does not support elicitation\. /)
        assert.match(
          result.content[0].text,
          /Use a client that does, or have the person .* set approve-writes to always$/
        )
        assert.deepStrictEqual(written, [])
        assert.strictEqual(yield* Queue.size(wire.incoming), 0)
      })
    )
  }

  it.effect("asks a client of the revision before forms had a name", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      yield* initialize(wire, { capabilities: { elicitation: {} }, protocolVersion: "2025-06-18" })
      const calling = yield* Effect.forkChild(call(wire, "shop__put", { item: "milk" }))
      yield* wire.respond((yield* Queue.take(wire.incoming)).id, { action: "accept", content: {} })
      yield* Fiber.join(calling)
      assert.deepStrictEqual(written, [{ item: "milk" }])
    })
  )

  it.effect("does not bother a person with arguments that do not fit", () =>
    Effect.gen(function* () {
      const { wire } = yield* withPut()
      yield* initialize(wire, { capabilities: canAsk })
      const result = yield* call(wire, "shop__put", { item: 1 })
      assert.match(result.content[0].text, /^Error: invalid arguments for tool "shop__put": arguments\.item: /)
      assert.strictEqual(yield* Queue.size(wire.incoming), 0)
    })
  )

  it.effect("withdraws the question when the tool goes, and does not run its replacement", () =>
    Effect.gen(function* () {
      const { register, scope, wire, written } = yield* withPut()
      yield* initialize(wire, { capabilities: canAsk })
      const calling = yield* Effect.forkChild(call(wire, "shop__put", { item: "milk" }))
      const question = yield* Queue.take(wire.incoming)
      yield* Scope.close(scope, Exit.void)
      yield* register
      assert.deepStrictEqual(
        yield* Fiber.join(calling),
        errorText('tool "shop__put" was taken back or replaced before it was approved; nothing was run')
      )
      const next = [yield* Queue.take(wire.incoming), yield* Queue.take(wire.incoming)]
      const cancelled = next.find(({ method }) => method === "notifications/cancelled")
      assert.strictEqual(cancelled?.params.requestId, question.id)
      yield* wire.respond(question.id, { action: "accept", content: {} })
      yield* wire.request("ping")
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("withdraws the question when the client cancels the call", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      yield* initialize(wire, { capabilities: canAsk })
      const calling = yield* Effect.forkChild(call(wire, "shop__put", { item: "milk" }))
      const question = yield* Queue.take(wire.incoming)
      yield* Fiber.interrupt(calling)
      const cancelled = yield* Queue.take(wire.incoming)
      assert.strictEqual(cancelled.method, "notifications/cancelled")
      assert.strictEqual(cancelled.params.requestId, question.id)
      yield* wire.respond(question.id, { action: "accept", content: {} })
      yield* wire.request("ping")
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("holds up nothing else while a person thinks", () =>
    Effect.gen(function* () {
      const { host, wire, written } = yield* withPut()
      yield* host.register(readTool("get", () => Effect.succeed(1)))
      yield* initialize(wire, { capabilities: canAsk })
      const one = yield* Effect.forkChild(call(wire, "shop__put", { item: "one" }))
      const questionOne = yield* Queue.take(wire.incoming)
      const two = yield* Effect.forkChild(call(wire, "shop__put", { item: "two" }))
      const questionTwo = yield* Queue.take(wire.incoming)
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual((yield* call(wire, "shop__get")).content[0].text, "1")

      yield* wire.respond(questionTwo.id, { action: "accept", content: {} })
      yield* Fiber.join(two)
      assert.deepStrictEqual(written, [{ item: "two" }])
      yield* wire.respond(questionOne.id, { action: "accept", content: {} })
      yield* Fiber.join(one)
      assert.deepStrictEqual(written, [{ item: "two" }, { item: "one" }])
    })
  )
})

describe("McpApproval in rounds of revision 2026-07-28", () => {
  const meta = modernMeta(canAsk)
  const accepted = { approval: { action: "accept", content: {} } }

  it.effect("asks in the result and runs when the call comes back with a yes, once", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      const asked = yield* call(wire, "shop__put", { item: "milk" }, meta)
      assert.strictEqual(asked.resultType, "input_required")
      assert.strictEqual(asked.inputRequests.approval.method, "elicitation/create")
      assert.include(asked.inputRequests.approval.params.message, '"item": "milk"')
      assert.deepStrictEqual(written, [])

      const answer = { ...meta, requestState: asked.requestState, inputResponses: accepted }
      const result = yield* call(wire, "shop__put", { item: "milk" }, answer)
      assert.strictEqual(result.resultType, "complete")
      assert.notProperty(result, "isError")
      assert.deepStrictEqual(written, [{ item: "milk" }])

      const again = yield* call(wire, "shop__put", { item: "milk" }, answer)
      assert.match(again.content[0].text, /was used before or came too late; call it again$/)
      assert.deepStrictEqual(written, [{ item: "milk" }])
    })
  )

  it.effect("carries the question of the generic call tool too", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      const args = { name: "shop__put", arguments: { item: "milk" } }
      const { requestState } = yield* call(wire, "frontend_tools_call_tool", args, meta)
      yield* call(wire, "frontend_tools_call_tool", args, { ...meta, requestState, inputResponses: accepted })
      assert.deepStrictEqual(written, [{ item: "milk" }])
    })
  )

  for (const [title, inputResponses, message] of [
    ["a no", { approval: { action: "decline" } }, 'the user rejected tool "shop__put"'],
    [
      "a closed question",
      { approval: { action: "cancel" } },
      'the question whether tool "shop__put" may run was closed without an answer'
    ],
    [
      "no answer",
      { other: { action: "accept" } },
      'the question whether tool "shop__put" may run was closed without an answer'
    ]
  ] as const) {
    it.effect(`runs nothing after ${title}`, () =>
      Effect.gen(function* () {
        const { wire, written } = yield* withPut()
        const { requestState } = yield* call(wire, "shop__put", { item: "milk" }, meta)
        const result = yield* call(wire, "shop__put", { item: "milk" }, { ...meta, requestState, inputResponses })
        assert.deepStrictEqual(result.content, errorText(message).content)
        assert.deepStrictEqual(written, [])
      })
    )
  }

  it.effect("does not let a yes stand for other arguments, another tool or a replaced one", () =>
    Effect.gen(function* () {
      const { host, register, scope, wire, written } = yield* withPut()
      yield* host.register(writeTool("drop", (args) => Effect.sync(() => written.push(args))))
      const ask = Effect.map(call(wire, "shop__put", { item: "milk" }, meta), ({ requestState }) => ({
        ...meta,
        requestState,
        inputResponses: accepted
      }))
      const texts = [
        yield* call(wire, "shop__put", { item: "beer" }, yield* ask),
        yield* call(wire, "shop__drop", { item: "milk" }, yield* ask)
      ]
      const answer = yield* ask
      yield* Scope.close(scope, Exit.void)
      yield* register
      texts.push(yield* call(wire, "shop__put", { item: "milk" }, answer))
      texts.push(yield* call(wire, "shop__put", { item: "milk" }, { ...answer, requestState: "made up" }))
      assert.deepStrictEqual(
        texts.map((result) => result.content[0].text),
        [
          'Error: the approval of tool "shop__put" was for other arguments',
          'Error: the approval was for tool "shop__put", not for tool "shop__drop"',
          'Error: tool "shop__put" was taken back or replaced before it was approved; nothing was run',
          'Error: the approval of tool "shop__put" was used before or came too late; call it again'
        ]
      )
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("forgets a question after ten minutes", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      const inTime = yield* call(wire, "shop__put", { item: "milk" }, meta)
      yield* TestClock.adjust("599999 millis")
      const answered = { ...meta, requestState: inTime.requestState, inputResponses: accepted }
      yield* call(wire, "shop__put", { item: "milk" }, answered)
      assert.strictEqual(written.length, 1)

      const tooLate = yield* call(wire, "shop__put", { item: "milk" }, meta)
      yield* TestClock.adjust("10 minutes")
      const late = { ...meta, requestState: tooLate.requestState, inputResponses: accepted }
      assert.isTrue((yield* call(wire, "shop__put", { item: "milk" }, late)).isError)
      assert.strictEqual(written.length, 1)
    })
  )

  it.effect("remembers the newest 64 questions", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      const states: Array<string> = []
      for (let n = 0; n < 65; n++) states.push((yield* call(wire, "shop__put", { item: "milk" }, meta)).requestState)
      const answer = (requestState: string | undefined) =>
        call(wire, "shop__put", { item: "milk" }, { ...meta, requestState, inputResponses: accepted })
      assert.isTrue((yield* answer(states[0])).isError)
      assert.isUndefined((yield* answer(states[1])).isError)
      assert.isUndefined((yield* answer(states[64])).isError)
      assert.strictEqual(written.length, 2)
    })
  )

  it.effect("refuses a client without elicitation, and says what to do", () =>
    Effect.gen(function* () {
      const { wire, written } = yield* withPut()
      const result = yield* call(wire, "shop__put", { item: "milk" }, modernMeta())
      assert.isTrue(result.isError)
      assert.include(result.content[0].text, "does not support elicitation")
      assert.deepStrictEqual(written, [])
    })
  )
})

describe("McpApproval without a person", () => {
  it.effect("lets writes run when set to always, after one warning", () =>
    Effect.gen(function* () {
      const { logged, wire, written } = yield* withPut({ approveWrites: "always" })
      yield* initialize(wire)
      yield* call(wire, "shop__put", { item: "milk" })
      yield* call(wire, "shop__put", { item: "beer" })
      assert.deepStrictEqual(written, [{ item: "milk" }, { item: "beer" }])
      assert.deepStrictEqual(logged, ["writes run without asking anybody, because approve-writes is set to always"])
    })
  )

  it.effect("lets no write run when set to never, and does not ask", () =>
    Effect.gen(function* () {
      const { logged, wire, written } = yield* withPut({ approveWrites: "never" })
      yield* initialize(wire, { capabilities: canAsk })
      assert.deepStrictEqual(
        yield* call(wire, "shop__put", { item: "milk" }),
        errorText('tool "shop__put" writes, and this server has approve-writes set to never')
      )
      assert.deepStrictEqual(written, [])
      assert.deepStrictEqual(logged, [])
      assert.strictEqual(yield* Queue.size(wire.incoming), 0)
    })
  )
})
