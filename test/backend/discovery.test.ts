import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { isJsonObject } from "../../src/domain/aidream/Absent.ts"
import type { StreamEvent } from "../../src/domain/aidream/StreamEvent.ts"
import { CurrentRun } from "../../src/layers/backend/CurrentRun.ts"
import { CHROME_EXTENSION, MATRX_USER } from "../../src/layers/backend/Executor.ts"
import type { ScriptedAnswer, ScriptedRequest } from "../../src/layers/backend/ScriptedModel.ts"
import { ServerTools } from "../../src/layers/backend/ServerTools.ts"
import type { CatalogTool } from "../../src/layers/backend/ToolCatalog.ts"
import {
  answer,
  browserClient,
  delegatedIds,
  inline,
  make,
  rest,
  resume,
  start,
  textOf,
  uuid
} from "./support/backend.ts"

const tool = (name: string, category: string, more?: Partial<CatalogTool>): CatalogTool => ({
  name,
  description: name,
  inputSchema: { type: "object", properties: {} },
  category,
  executors: [CHROME_EXTENSION],
  ...more
})

const catalog: ReadonlyArray<CatalogTool> = [
  tool("forms:fill_form", "forms"),
  tool("forms:submit_form", "forms"),
  tool("tabs:close_tab", "tabs", { requiresPermissions: ["tabs"] }),
  tool("tabs:list_tabs", "tabs"),
  tool("admin:purge", "admin", { adminOnly: true }),
  tool("system:reload", "system", { adminOnly: true }),
  tool("system:desktop_run_command", "system"),
  tool("web:other", "elsewhere", { executors: [MATRX_USER] })
]

const load = (category: unknown): ScriptedAnswer => ({
  calls: [{ tool: "load_chrome_tools", arguments: { category } }]
})

/** Makes the calls in turn and remembers the tools it was offered each time. */
const scripted = (...answers: ReadonlyArray<ScriptedAnswer>) => {
  const offered: Array<ReadonlyArray<string>> = []
  const model = (request: ScriptedRequest): ScriptedAnswer => {
    offered.push(request.tools)
    return answers[request.step] ?? { text: "done" }
  }
  return { offered, model }
}

const results = (events: ReadonlyArray<StreamEvent>) =>
  events.flatMap((event) =>
    event._tag === "tool_event" && (event.data.event === "tool_completed" || event.data.event === "tool_error")
      ? [isJsonObject(event.data.data) ? event.data.data : {}]
      : []
  )

const changes = (events: ReadonlyArray<StreamEvent>) =>
  events.flatMap((event) => (event._tag === "resource_changed" ? [event.data] : []))

const loaded = (category: string, names: ReadonlyArray<string>, more: Readonly<Record<string, unknown>> = {}) => ({
  result: {
    category,
    tools_loaded: names,
    count: names.length,
    missing_from_catalog: [],
    skipped_admin_only: [],
    skipped_missing_permission: [],
    skipped_desktop_unavailable: [],
    already_loaded: null,
    message: null,
    ...more
  }
})

const run = Effect.fnUntraced(function* (
  answers: ReadonlyArray<ScriptedAnswer>,
  body: Readonly<Record<string, unknown>> = { client: browserClient() }
) {
  const { model, offered } = scripted(...answers)
  const backend = yield* make({ model, catalog })
  const id = uuid()
  const events = yield* rest(yield* start(backend, id, body))
  return { backend, events, id, offered }
})

const ask = (category: unknown, client: unknown = browserClient()) =>
  Effect.map(run([load(category)], { client }), ({ events }) => results(events)[0] ?? {})

describe("load_chrome_tools", () => {
  it.effect("is the only tool of a browser at first; loading makes the category callable", () =>
    Effect.gen(function* () {
      const { events, id, offered } = yield* run([load("forms")])
      assert.deepStrictEqual(offered, [["load_chrome_tools"], ["forms__fill_form", "forms__submit_form"]])
      assert.deepStrictEqual(results(events), [loaded("forms", ["forms__fill_form", "forms__submit_form"])])
      assert.deepStrictEqual(changes(events), [
        {
          kind: "active_tools",
          action: "invalidated",
          resource_id: id,
          metadata: {
            added_tools: ["forms__fill_form", "forms__submit_form"],
            removed_tools: ["load_chrome_tools"],
            active_count: 2,
            added: 2,
            removed: 1,
            sources: ["+by:load_chrome_tools", "-by:load_chrome_tools"]
          }
        }
      ])
    })
  )

  it.effect(
    "1: without a live browser it fails and leaves; F-11: browser tools are not offered then, not even inline",
    () =>
      Effect.gen(function* () {
        const replaced = yield* run([load("forms")], {
          tools_replace: [{ kind: "registered", name: "load_chrome_tools" }, inline("look")]
        })
        assert.deepInclude(results(replaced.events)[0], { error_type: "client_unavailable" })
        assert.deepStrictEqual(replaced.offered, [["load_chrome_tools", "look"], ["look"]])

        const plain = yield* run([], {
          tools: [inline("forms:fill_form"), { kind: "registered", name: "tabs:list_tabs" }, inline("look")]
        })
        assert.deepStrictEqual(plain.offered, [["look"]])
      })
  )

  it.effect("2: a missing, blank or non-string category", () =>
    Effect.gen(function* () {
      for (const category of [undefined, "", "   ", 5, null, ["forms"]]) {
        const failed = yield* ask(category)
        assert.deepInclude(failed, { error_type: "invalid_argument" })
        assert.include(JSON.stringify(failed), "admin, forms, system, tabs")
      }
    })
  )

  it.effect("3: an unknown category, with a hint", () =>
    Effect.gen(function* () {
      const failed = yield* ask("form")
      assert.deepInclude(failed, { error_type: "unknown_category" })
      assert.include(JSON.stringify(failed), 'no category \\"form\\"')
      assert.include(JSON.stringify(failed), 'mean \\"forms\\"')
      // Tools of other executors make no category of a browser.
      assert.deepInclude(yield* ask("elsewhere"), { error_type: "unknown_category" })
    })
  )

  it.effect("4: what is really loaded is not loaded again; F-09: a client's memory alone does not count", () =>
    Effect.gen(function* () {
      const twice = yield* run([load("forms")], {
        client: browserClient(),
        tools: [
          { kind: "registered", name: "forms:fill_form" },
          { kind: "registered", name: "forms__submit_form" }
        ]
      })
      assert.deepStrictEqual(
        results(twice.events)[0],
        loaded("forms", [], {
          already_loaded: true,
          message: 'The tools of "forms" are loaded already. Call them directly.'
        })
      )
      assert.deepStrictEqual(twice.offered[1], ["forms__fill_form", "forms__submit_form"])

      const hinted = yield* run([load("forms")], { client: browserClient({ loaded_categories: ["forms"] }) })
      assert.deepStrictEqual(results(hinted.events), [loaded("forms", ["forms__fill_form", "forms__submit_form"])])
    })
  )

  it.effect("5: a category for administrators only", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* ask("admin"), { error_type: "forbidden" })
      assert.deepStrictEqual(yield* ask("admin", browserClient({ is_admin: true })), loaded("admin", ["admin__purge"]))
    })
  )

  it.effect("6: filters by administrator, permission and desktop; all filtered is still a success", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* ask("tabs"),
        loaded("tabs", ["tabs__list_tabs"], { skipped_missing_permission: ["tabs__close_tab"] })
      )
      assert.deepStrictEqual(
        yield* ask("tabs", browserClient({ optional_permissions_granted: ["tabs"] })),
        loaded("tabs", ["tabs__close_tab", "tabs__list_tabs"])
      )
      assert.deepStrictEqual(
        yield* ask("system"),
        loaded("system", [], {
          skipped_admin_only: ["system__reload"],
          skipped_desktop_unavailable: ["system__desktop_run_command"],
          message: 'No tool of "system" can be used now; see the skipped lists.'
        })
      )
      assert.deepStrictEqual(
        yield* ask("system", browserClient({ is_admin: true, desktop_bridge: "native" })),
        loaded("system", ["system__reload", "system__desktop_run_command"])
      )
    })
  )

  it.effect("no state at all: not admin, nothing granted, no desktop", () =>
    Effect.gen(function* () {
      const client = { capabilities: ["browser-dom"] }
      assert.deepStrictEqual(
        yield* ask("tabs", client),
        loaded("tabs", ["tabs__list_tabs"], { skipped_missing_permission: ["tabs__close_tab"] })
      )
      assert.deepInclude(yield* ask("admin", client), { error_type: "forbidden" })
    })
  )

  it.effect("parallel calls of one iteration add up, in one event", () =>
    Effect.gen(function* () {
      const { events, offered } = yield* run([
        {
          calls: [
            { tool: "load_chrome_tools", arguments: { category: "forms" } },
            { tool: "load_chrome_tools", arguments: { category: "tabs" } }
          ]
        }
      ])
      assert.deepStrictEqual(offered[1], ["forms__fill_form", "forms__submit_form", "tabs__list_tabs"])
      assert.strictEqual(changes(events).length, 1)
    })
  )

  it.effect("F-46: loaded tools survive the suspensions of their turn, and not the turn", () =>
    Effect.gen(function* () {
      const { backend, events, id, offered } = yield* run([
        load("forms"),
        { calls: [{ tool: "forms__fill_form", id: "fill" }] },
        load("tabs")
      ])
      assert.deepStrictEqual(delegatedIds(events), ["fill"])
      yield* answer(backend, id, [{ call_id: "fill", output: "ok" }])
      const resumed = yield* rest(yield* resume(backend, id, { client: browserClient() }))
      assert.strictEqual(textOf(resumed), "done")
      assert.deepStrictEqual(offered.slice(2), [
        ["load_chrome_tools", "forms__fill_form", "forms__submit_form"],
        ["forms__fill_form", "forms__submit_form", "tabs__list_tabs"]
      ])
      yield* rest(
        yield* backend.post(`/ai/conversations/${id}`, {
          user_input: "again",
          client: browserClient(),
          max_iterations: 1
        })
      )
      assert.deepStrictEqual(offered[4], ["load_chrome_tools"])
    })
  )

  it.effect("F-46: on a resume without the browser the loaded tools are dropped", () =>
    Effect.gen(function* () {
      const { backend, id, offered } = yield* run([
        load("forms"),
        { calls: [{ tool: "forms__fill_form", id: "fill" }] }
      ])
      yield* answer(backend, id, [{ call_id: "fill", output: "ok" }])
      yield* rest(yield* resume(backend, id))
      assert.deepStrictEqual(offered[2], [])
    })
  )
})

describe("tool changes", () => {
  const grow = Tool.make("grow", { success: Schema.String })
  const toolkit = Toolkit.make(grow)

  const withGrow = Effect.fnUntraced(function* (change: (run: CurrentRun["Service"]) => void) {
    const { model, offered } = scripted({ calls: [{ tool: "grow" }] }, { calls: [{ tool: "grow" }] })
    const backend = yield* make({
      model,
      catalog,
      agents: { any: { instructions: "", tools: ["grow"] } },
      config: { hostExclusions: ["forms:submit_form"] },
      serverTools: ServerTools.layer(toolkit).pipe(
        Layer.provide(
          toolkit.toLayer({
            // As deep in fibers of its own as a tool may be (F-08).
            grow: () =>
              CurrentRun.current.pipe(
                Effect.map(change),
                Effect.forkChild,
                Effect.flatMap(Fiber.join),
                Effect.forkChild,
                Effect.flatMap(Fiber.join),
                Effect.as("grown")
              )
          })
        )
      )
    })
    const events = yield* rest(yield* start(backend, uuid(), { client: browserClient() }))
    return { events, offered }
  })

  const registered = (name: string) => ({ kind: "registered" as const, name, delegate: false })

  it.effect("F-08: what a tool queues in a child fiber is there for the next model call", () =>
    Effect.gen(function* () {
      const { events, offered } = yield* withGrow(({ changes }) => {
        changes.add([registered("forms:fill_form")], "grow")
        changes.remove(["load_chrome_tools"], "grow")
      })
      assert.deepStrictEqual(offered, [
        ["load_chrome_tools", "grow"],
        ["grow", "forms__fill_form"],
        ["grow", "forms__fill_form"]
      ])
      // The second time nothing is different, so nothing is announced.
      assert.strictEqual(changes(events).length, 1)
    })
  )

  it.effect("removals come first, empty changes are none, host exclusions hold", () =>
    Effect.gen(function* () {
      const { events, offered } = yield* withGrow(({ changes }) => {
        changes.add([], "grow")
        changes.remove([], "grow")
        changes.add([registered("forms__fill_form"), registered("forms:submit_form")], "grow")
        changes.remove(["forms:fill_form"], "grow")
      })
      assert.deepStrictEqual(offered[1], ["load_chrome_tools", "grow", "forms__fill_form"])
      assert.deepStrictEqual(changes(events)[0]?.metadata?.sources, ["+by:grow", "-by:grow"])
    })
  )

  it.effect("a spec of an unknown kind ends the run with an error", () =>
    Effect.gen(function* () {
      const { events } = yield* withGrow(({ changes }) => changes.add([{ kind: "agent", agent_id: "x" }], "grow"))
      const error = events.find((event) => event._tag === "error")
      assert.strictEqual(error?.data.error_type, "tool_merge_error")
    })
  )
})
