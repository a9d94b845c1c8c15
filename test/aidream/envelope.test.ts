import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Credentials, hostToolSource, makeTool } from "../../src/aidream.ts"
import { type HostTool, makeWriteTool } from "../../src/domain/bridge/HostTool.ts"
import { accepted, lines, startBackend } from "./support/Backend.ts"
import { agent, conversation, counting, startClient, watch } from "./support/Client.ts"
import { answers, delegated, end, suspends } from "./support/events.ts"
import { until } from "./support/until.ts"

describe("the envelope", () => {
  it.effect("F-06 F-38 a resume tells state and context anew, as they are then", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      let tab = 1
      const move = counting("move", "read", () =>
        Effect.sync(() => {
          tab = 2
        })
      )
      backend.on("start", lines(suspends("req-1", delegated("c1", "move"))))
      backend.on("tool_results", accepted(true))
      backend.on("resume", lines(answers("fine")))
      const client = yield* startClient(backend, {
        tools: [move.tool],
        capabilities: {
          surface: "test/surface",
          providers: [
            { name: "browser-dom", state: () => Effect.sync(() => ({ current_tab_id: tab, brand_new: "kept" })) }
          ],
          context: [() => Effect.sync(() => ({ page: `page ${tab}` }))]
        }
      })
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi", options: { organization_id: "org" } }))
      assert.strictEqual(yield* turn.ended, "complete")
      const bodies = [backend.to("start")[0]?.body, backend.to("resume")[0]?.body]
      assert.deepStrictEqual(
        bodies.map(({ client: told, context }) => [told.capabilities, told.state["browser-dom"], context]),
        [
          [["browser-dom"], { current_tab_id: 1, brand_new: "kept" }, { page: "page 1" }],
          [["browser-dom"], { current_tab_id: 2, brand_new: "kept" }, { page: "page 2" }]
        ]
      )
      assert.deepStrictEqual(
        bodies.map(({ organization_id: id }) => id),
        ["org", "org"]
      )
      assert.isFalse("user_input" in bodies[1])
      assert.isFalse("results" in bodies[1])
    })
  )

  it.effect("F-28 a capability is declared only while its executor lives, and a broken one is left out", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on("start", lines([end()]))
      let isLive = false
      const client = yield* startClient(backend, {
        capabilities: {
          providers: [
            { name: "desktop-native", state: () => Effect.sync(() => (isLive ? { platform: "linux" } : undefined)) },
            { name: "plain", state: () => Effect.succeed("stateless" as const) },
            { name: "broken", state: () => Effect.die("a bug") }
          ]
        }
      })
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
      isLive = true
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
      assert.deepStrictEqual(
        backend.to("start").map(({ body }) => [body.client.capabilities, Object.keys(body.client.state)]),
        [
          [["plain"], []],
          [["desktop-native", "plain"], ["desktop-native"]]
        ]
      )
    })
  )

  it.effect("F-43 the tab is resolved once per send, for builders, run and calls", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      let asked = 0
      const seen: Array<number | undefined> = []
      const pinned = makeTool({
        name: "look",
        tier: "read",
        parameters: Schema.Struct({}),
        run: (_, call) =>
          Effect.sync(() => {
            seen.push(call.pinnedTab)
          })
      })
      backend.on("start", lines([delegated("c1", "look"), end()]))
      const client = yield* startClient(backend, {
        tools: [pinned],
        capabilities: {
          pin: Effect.sync(() => ({ tabId: ++asked, facts: {} })),
          providers: [{ name: "browser-dom", state: ({ pin }) => Effect.succeed({ current_tab_id: pin.tabId }) }],
          context: [({ pin }) => Effect.succeed({ tab: pin.tabId })]
        }
      })
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
      const { client: told, context } = backend.to("start")[0]?.body ?? {}
      assert.deepStrictEqual([told.state["browser-dom"].current_tab_id, context.tab, seen], [1, 1, [1]])
    })
  )

  it.effect("long texts in the context are cut, and say so", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on("start", lines([end()]))
      const client = yield* startClient(backend, {
        config: { maxContextText: 5 },
        capabilities: { context: [() => Effect.succeed({ page: { text: "123456789", title: "short" } })] }
      })
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
      assert.deepStrictEqual(backend.to("start")[0]?.body.context, {
        page: { text: "12345", text_truncated: true, text_length: 9, title: "short" }
      })
    })
  )

  it.effect("tools that the backend does not know are announced, and gone when their source is", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      backend.on("start", lines([end()]))
      const wrote: Array<unknown> = []
      const fields = { namespace: "shop", description: "d", parametersSchema: { type: "object" } }
      const source = new Map<string, HostTool>()
      const read = {
        ...fields,
        publicName: "shop__list",
        label: "shop.list",
        rawName: "list",
        access: "read",
        call: () => Effect.succeed([1])
      }
      const client = yield* startClient(backend)
      const write = makeWriteTool(
        // biome-ignore lint/suspicious/noExplicitAny: brands of the bridge are not this test's subject
        { ...fields, publicName: "shop__buy", label: "shop.buy", rawName: "buy" } as any,
        (args) =>
          Effect.sync(() => {
            wrote.push(args)
            return "bought"
          })
      )
      // biome-ignore lint/suspicious/noExplicitAny: brands of the bridge are not this test's subject
      source.set("shop__list", read as any).set("shop__buy", write)
      yield* client.library.addSource(
        hostToolSource({ list: () => source.values(), lookup: (name) => source.get(name) })
      )
      backend.on("start", lines([delegated("r", "shop__list"), delegated("w", "shop__buy", { item: 7 }), end()]))
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi", mode: "act" }))
      yield* turn.ended
      assert.deepStrictEqual(
        backend
          .to("start")[0]
          ?.body.client.amendments.add.map(({ kind, name }: { readonly kind: string; readonly name: string }) => [
            kind,
            name
          ]),
        [
          ["inline", "shop__buy"],
          ["inline", "shop__list"]
        ]
      )
      assert.deepStrictEqual(
        turn.of("CallFinished").map(({ result }) => result.output),
        [[1], "bought"]
      )
      assert.deepStrictEqual(wrote, [{ item: 7 }])

      source.clear()
      backend.on("start", lines([end()]))
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "hi" }))).ended
      assert.isUndefined(backend.to("start")[1]?.body.client.amendments)
    })
  )

  it.effect("F-10 the live tool set follows the lists in the metadata, categories the loader", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const change = (metadata: unknown) => ({
        event: "RESOURCE_CHANGED",
        data: { kind: "active_tools", action: "invalidated", resource_id: "conv-1", metadata }
      })
      const loader = (event: string, callId: string, data: unknown) => ({
        event: "tool_event",
        data: { event, call_id: callId, tool_name: "load_chrome_tools", data }
      })
      backend.on(
        "start",
        lines([
          loader("tool_started", "l1", { arguments: { category: "forms" } }),
          loader("tool_completed", "l1", { result: { tools_loaded: ["fill_form", "submit_form"], count: 2 } }),
          change({ added_tools: ["fill_form", "submit_form"], removed_tools: ["load_chrome_tools"], active_count: 2 }),
          loader("tool_completed", "l2", { result: { category: "history", tools_loaded: [], count: 0 } }),
          change({ added_tools: ["open_tab"], removed_tools: ["submit_form"], active_count: 2 }),
          end()
        ])
      )
      backend.on("continue", lines([end()]))
      const client = yield* startClient(backend, {
        capabilities: {
          providers: [
            {
              name: "browser-dom",
              state: ({ loadedCategories }) => Effect.succeed({ loaded_categories: loadedCategories })
            }
          ]
        }
      })
      yield* (yield* watch(
        client.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
      )).ended
      assert.deepStrictEqual(client.active.of(conversation), {
        tools: ["fill_form", "open_tab"],
        count: 2,
        categories: ["forms"]
      })
      yield* (yield* watch(client.runs.run({ agentId: agent, message: "more", conversationId: conversation }))).ended
      assert.deepStrictEqual(backend.to("continue")[0]?.body.client.state["browser-dom"], {
        loaded_categories: ["forms"]
      })
      assert.deepStrictEqual(client.active.of(conversation).tools, [])
    })
  )
})

describe("credentials", () => {
  const once = Effect.fnUntraced(function* (credentials: Layer.Layer<Credentials>) {
    const backend = yield* startBackend
    backend.on("start", lines([end()]))
    const client = yield* startClient(backend, { credentials })
    const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
    return { backend, turn }
  })

  it.effect("a guest sends its fingerprint and no bearer", () =>
    Effect.gen(function* () {
      const { backend, turn } = yield* once(Credentials.layerGuest(Redacted.make("fp")))
      yield* turn.ended
      assert.deepInclude(backend.to("start")[0]?.headers, { "x-fingerprint-id": "fp", accept: "application/x-ndjson" })
      assert.isUndefined(backend.to("start")[0]?.headers.authorization)
    })
  )

  it.effect("F-39 a signed-in caller without a readable token waits, and then refuses to send", () =>
    Effect.gen(function* () {
      let token: Redacted.Redacted<string> | undefined
      const session = Credentials.layerSession({
        signedIn: Effect.succeed(true),
        readToken: Effect.sync(() => token),
        fingerprint: Redacted.make("fp")
      })
      const late = yield* once(session)
      yield* TestClock.adjust("1 second")
      token = Redacted.make("arrived")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* late.turn.ended, "complete")
      assert.strictEqual(late.backend.to("start")[0]?.headers.authorization, "Bearer arrived")

      token = undefined
      const never = yield* once(session)
      yield* TestClock.adjust("2 seconds")
      yield* until("it failed", () => never.turn.error !== undefined)
      assert.strictEqual(never.turn.error?.reason._tag, "CredentialUnavailable")
      assert.strictEqual(never.backend.received.length, 0)
    })
  )

  it.effect("a token is in no error and no event", () =>
    Effect.gen(function* () {
      const backend = yield* startBackend
      const client = yield* startClient(
        { ...backend, url: "http://127.0.0.1:1" },
        { credentials: Credentials.layerBearer(Redacted.make("very-secret")) }
      )
      const turn = yield* watch(client.runs.run({ agentId: agent, message: "hi" }))
      yield* turn.ended
      assert.strictEqual(turn.error?.reason._tag, "Unreachable")
      assert.notInclude(`${turn.error?.stack}${JSON.stringify(turn.error)}${turn.error?.message}`, "very-secret")
    })
  )
})
