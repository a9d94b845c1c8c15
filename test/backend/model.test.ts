import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { LanguageModel, type Prompt, type Response, Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import type { StreamEvent } from "../../src/domain/aidream/StreamEvent.ts"
import { Models } from "../../src/layers/backend/Models.ts"
import * as ScriptedModel from "../../src/layers/backend/ScriptedModel.ts"
import { ServerTools } from "../../src/layers/backend/ServerTools.ts"
import {
  answer,
  delegatedIds,
  inline,
  lastResults,
  make,
  outline,
  rest,
  resume,
  start,
  tags,
  textOf,
  uuid
} from "./support/backend.ts"

const toolEvents = (events: ReadonlyArray<StreamEvent>) =>
  events.flatMap((event) => (event._tag === "tool_event" ? [event.data] : []))

describe("asking the model", () => {
  it.effect("a temporary failure is tried again, with pauses the reader is told about", () =>
    Effect.gen(function* () {
      let failures = 2
      const backend = yield* make({ model: () => (failures-- > 0 ? { fail: "overloaded" } : { text: "there" }) })
      const opened = yield* start(backend, uuid())
      yield* TestClock.adjust("3 seconds")
      const events = yield* rest(opened)
      assert.strictEqual(textOf(events), "there")
      assert.deepStrictEqual(
        events.flatMap((event) =>
          event._tag === "provider_retry" ? [[event.data.state, event.data.retry_delay ?? null]] : []
        ),
        [
          ["scheduled", 1],
          ["retrying_now", null],
          ["scheduled", 2],
          ["retrying_now", null],
          ["recovered", null]
        ]
      )
      assert.include(outline(events), "end complete")
    })
  )

  it.effect("a lasting failure ends the turn as failed", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: () => ({ fail: "overloaded" }), config: { providerBackoff: 0 } })
      const id = uuid()
      const events = yield* rest(yield* start(backend, id))
      assert.strictEqual(tags(events).filter((tag) => tag === "provider_retry").length, 4)
      assert.deepStrictEqual(outline(events).slice(-3), ["error provider_error", "completion failed", "end failed"])
      const [turn] = yield* backend.sql`SELECT status, metadata FROM user_requests`
      assert.strictEqual(turn?.status, "failed")
    })
  )

  it.effect("a model that crashes fails the turn without telling why", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: () => {
          throw new Error("secret-token-1234")
        }
      })
      const opened = yield* start(backend, uuid())
      const events = yield* rest(opened)
      assert.deepStrictEqual(outline(events), ["error internal_error", "completion failed", "end failed"])
      assert.notInclude(JSON.stringify(events), "secret-token-1234")
    })
  )

  it.effect("a turn has a bound over all its runs", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: () => ({ calls: [{ tool: "look" }] }) })
      const id = uuid()
      const tools = [inline("look")]
      let events = yield* rest(yield* start(backend, id, { tools, max_iterations: 3 }))
      for (let round = 1; round < 3; round++) {
        yield* answer(backend, id, [{ call_id: delegatedIds(events)[0] }])
        events = yield* rest(yield* resume(backend, id, { tools }))
      }
      yield* answer(backend, id, [{ call_id: delegatedIds(events)[0] }])
      events = yield* rest(yield* resume(backend, id, { tools }))
      assert.deepStrictEqual(outline(events), ["error max_iterations", "completion failed", "end failed"])
    })
  )

  it.effect("call ids are unique in a conversation even where the provider's are not", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: ({ prompt, step }) =>
          step < 2
            ? {
                calls: [
                  { tool: "look", id: "same" },
                  { tool: "look", id: "same" },
                  { tool: "look", id: "" }
                ]
              }
            : { text: lastResults(prompt) }
      })
      const id = uuid()
      const tools = [inline("look")]
      const first = delegatedIds(yield* rest(yield* start(backend, id, { tools })))
      assert.deepStrictEqual(first, ["same", "same-2", "call"])
      yield* answer(
        backend,
        id,
        first.map((call_id) => ({ call_id, output: call_id }))
      )
      const second = delegatedIds(yield* rest(yield* resume(backend, id, { tools })))
      assert.deepStrictEqual(second, ["same-3", "same-4", "call-2"])
      yield* answer(
        backend,
        id,
        second.map((call_id) => ({ call_id, output: call_id }))
      )
      const last = yield* rest(yield* resume(backend, id, { tools }))
      assert.strictEqual(textOf(last), 'look:"same-3" look:"same-4" look:"call-2"')
    })
  )

  it.effect("tool_choice reaches the model; a model without tools is offered none", () =>
    Effect.gen(function* () {
      const seen: Array<{ readonly choice: unknown; readonly tools: number }> = []
      const model = yield* LanguageModel.make({
        generateText: () => Effect.succeed([]),
        streamText: ({ toolChoice, tools }) =>
          Stream.suspend(() => {
            seen.push({ choice: toolChoice, tools: tools.length })
            return Stream.empty
          })
      })
      const modelLayer = Layer.succeed(LanguageModel.LanguageModel, model)
      const backend = yield* make({ modelLayer })
      const tools = [inline("look")]
      for (const tool_choice of ["required", { tool: "look" }, "anything", undefined]) {
        const opened = yield* start(backend, uuid(), { tools, config_overrides: { tool_choice } })
        assert.include(outline(yield* rest(opened)), "end complete")
      }
      assert.deepStrictEqual(seen, [
        { choice: "required", tools: 1 },
        { choice: { tool: "look" }, tools: 1 },
        { choice: "auto", tools: 1 },
        { choice: "auto", tools: 1 }
      ])
    })
  )

  it.effect("reasoning is streamed and kept", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: () => ({ reasoning: "hm hm", text: "so" }) })
      const events = yield* rest(yield* start(backend, uuid()))
      assert.strictEqual(
        events.flatMap((event) => (event._tag === "reasoning_chunk" ? [event.data.text] : [])).join(""),
        "hm hm"
      )
      const [, message] = yield* backend.sql`SELECT content FROM messages ORDER BY position`
      assert.deepStrictEqual(
        JSON.parse(String(message?.content)).content.map((part: { readonly type: string }) => part.type),
        ["reasoning", "text"]
      )
    })
  )
})

describe("running tools on the server", () => {
  const add = Tool.make("add", {
    description: "Adds.",
    parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    success: Schema.Struct({ sum: Schema.Finite }),
    failure: Schema.Struct({ message: Schema.String })
  })
  const crash = Tool.make("crash", { success: Schema.String })
  const toolkit = Toolkit.make(add, crash)
  const serverTools = ServerTools.layer(toolkit).pipe(
    Layer.provide(
      toolkit.toLayer({
        add: ({ a, b }) =>
          a + b > 100 ? Effect.fail({ message: "too much" }) : Effect.as(Effect.sleep(1500), { sum: a + b }),
        crash: () => Effect.die(new Error("password=hunter2"))
      })
    )
  )
  const agents = { any: { instructions: "", tools: ["add", "crash"] } }

  const runCalls = Effect.fnUntraced(function* (
    ...calls: ReadonlyArray<{ readonly tool: string; readonly arguments?: unknown; readonly id?: string }>
  ) {
    const prompts: Array<Prompt.Prompt> = []
    const backend = yield* make({
      agents,
      serverTools,
      model: ({ prompt, step }) => {
        prompts.push(prompt)
        return step === 0 ? { calls } : { text: lastResults(prompt) }
      }
    })
    const opened = yield* start(backend, uuid())
    yield* TestClock.adjust("2 seconds")
    return { backend, events: yield* rest(opened), prompts }
  })

  it.effect("F-34: started and completed are told, with arguments and result, and kept with their time", () =>
    Effect.gen(function* () {
      const { backend, events } = yield* runCalls({ tool: "add", arguments: { a: 1, b: 2 }, id: "s" })
      assert.deepStrictEqual(
        toolEvents(events).map(({ data, event }) => ({ data, event })),
        [
          { event: "tool_started", data: { arguments: { a: 1, b: 2 } } },
          { event: "tool_completed", data: { result: { sum: 3 } } }
        ]
      )
      assert.strictEqual(textOf(events), 'add:{"sum":3}')
      const [row] = yield* backend.sql`SELECT status, duration_ms, is_client_delegated FROM tool_calls`
      assert.deepStrictEqual({ ...row }, { status: "completed", duration_ms: 1500, is_client_delegated: 0 })
    })
  )

  it.effect("whatever goes wrong is a result the model can read, and no secret", () =>
    Effect.gen(function* () {
      const { backend, events } = yield* runCalls(
        { tool: "add", arguments: { a: 99, b: 2 }, id: "fails" },
        { tool: "add", arguments: { a: "x" }, id: "bad" },
        { tool: "crash", id: "crash" },
        { tool: "addd", id: "unknown" }
      )
      assert.deepStrictEqual(
        toolEvents(events)
          .flatMap(({ call_id, data, event }) =>
            event === "tool_error" ? [[call_id, JSON.parse(JSON.stringify(data)).error_type]] : []
          )
          .sort(),
        [
          ["bad", "invalid_arguments"],
          ["crash", "tool_crashed"],
          ["fails", "tool_failed"],
          ["unknown", "tool_not_found"]
        ]
      )
      assert.include(textOf(events), "Close names: add")
      assert.include(textOf(events), "too much")
      const rows = yield* backend.sql`SELECT * FROM tool_calls`
      assert.notInclude(JSON.stringify([events, rows]), "hunter2")
    })
  )

  it.effect("arguments that no client could take are answered here", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: ({ prompt, step }) =>
          step === 0 ? { calls: [{ tool: "look", arguments: [1], id: "c" }] } : { text: lastResults(prompt) }
      })
      const events = yield* rest(yield* start(backend, uuid(), { tools: [inline("look")] }))
      assert.deepStrictEqual(delegatedIds(events), [])
      assert.strictEqual(textOf(events), 'look:!"The arguments must be a JSON object."')
    })
  )

  it.effect("a name in another spelling is the same tool (10.6)", () =>
    Effect.gen(function* () {
      const backend = yield* make({ model: () => ({ calls: [{ tool: "page:look", id: "c" }] }) })
      const events = yield* rest(yield* start(backend, uuid(), { tools: [inline("page:look")] }))
      const [event] = toolEvents(events)
      assert.deepInclude(event, { event: "tool_delegated", tool_name: "page__look", canonical_name: "page:look" })
    })
  )

  it.effect("F-32: no name with a colon reaches the model", () =>
    Effect.gen(function* () {
      const offered: Array<string> = []
      const backend = yield* make({
        model: ({ tools }) => {
          offered.push(...tools)
          return { text: "x" }
        }
      })
      yield* rest(yield* start(backend, uuid(), { tools: [inline("page:look"), inline("a:b:c")] }))
      assert.deepStrictEqual(offered, ["page__look", "a__b__c"])
    })
  )
})

describe("ScriptedModel", () => {
  const parts = (options: { readonly prompt: string }, script: ScriptedModel.Script) =>
    LanguageModel.streamText(options).pipe(
      Stream.runCollect,
      Effect.provide(ScriptedModel.layerScript(script)),
      Effect.map((all): ReadonlyArray<Response.AnyPart> => all)
    )

  it.effect("picks the rule for the message, and is the same every time", () =>
    Effect.gen(function* () {
      const script: ScriptedModel.Script = {
        rules: [{ when: "weather", answers: [{ text: "It rains." }] }, { answers: [{ text: "Hello." }] }]
      }
      const textOfParts = (all: ReadonlyArray<Response.AnyPart>) =>
        all.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])).join("")
      assert.strictEqual(textOfParts(yield* parts({ prompt: "the weather?" }, script)), "It rains.")
      assert.strictEqual(textOfParts(yield* parts({ prompt: "hi" }, script)), "Hello.")
      assert.deepStrictEqual(yield* parts({ prompt: "hi" }, script), yield* parts({ prompt: "hi" }, script))
    })
  )

  it.effect("answers whole, too", () =>
    Effect.gen(function* () {
      const response = yield* LanguageModel.generateText({ prompt: "hi" }).pipe(
        Effect.provide(ScriptedModel.layer(() => ({ text: "Hello you." })))
      )
      assert.strictEqual(response.text, "Hello you.")
    })
  )

  it.effect("the chosen model may depend on agent and overrides", () =>
    Effect.gen(function* () {
      const models = yield* Models.use((each) =>
        each.choose({ agent: { instructions: "", tools: [] }, overrides: {} })
      ).pipe(Effect.provide(Models.layer.pipe(Layer.provide(ScriptedModel.layerDemo))))
      assert.isTrue(models.tools)
    })
  )
})
