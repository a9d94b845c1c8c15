/** The outbound half on the real registry of a bridge: what applications register is what the agent has. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { CallId, hostToolSource, type Tier } from "../../src/aidream.ts"
import { MirrorRegistry } from "../../src/index.ts"
import { echoApplication } from "../support/echoApplication.ts"
import { memoryBridge, tool } from "../support/memoryBridge.ts"
import { accepted, lines, liveRun, startBackend } from "./support/Backend.ts"
import { agent, conversation, counting, startClient, watch } from "./support/Client.ts"
import { answers, delegated, suspends } from "./support/events.ts"
import { until } from "./support/until.ts"

const LONG = "x".repeat(64)

const bridged = Effect.gen(function* () {
  const backend = yield* startBackend
  const staticClients = ["demo", "local_shop", "mcp"].map((namespace) => ({ namespace, key: `${namespace}-key` }))
  const bridge = yield* Layer.build(memoryBridge({ staticClients }))
  const mirror = Context.get(bridge, MirrorRegistry)
  const own = counting("own", "privileged")
  const client = yield* startClient(backend, { tools: [own.tool] })
  yield* client.library.addSource(hostToolSource(mirror))
  backend.on("tool_results", accepted(true))
  backend.on("resume", lines(answers("Done.")))
  return {
    backend,
    client,
    mirror,
    application: (...args: Parameters<typeof echoApplication>) => Effect.provide(echoApplication(...args), bridge),
    /** Names and tiers of what the library has. */
    tiers: (): Readonly<Record<string, Tier>> =>
      Object.fromEntries(client.library.list().map(({ name, tier }) => [name, tier])),
    say: (message: string, mode: "ask" | "act" = "ask") =>
      watch(client.runs.run({ agentId: agent, message, conversationId: conversation, isNew: true, mode }))
  }
})

const posted = (backend: Effect.Success<typeof bridged>["backend"]) =>
  backend
    .to("tool_results")
    .flatMap(({ body }) =>
      body.results.map(({ error_message, output, tool_name }: Record<string, unknown>) => [
        tool_name,
        error_message ?? output
      ])
    )

describe("tools of a bridge's applications", () => {
  it.effect("are there while they are mirrored: tier read when they only read, else action", () =>
    Effect.gen(function* () {
      const { application, client, tiers } = yield* bridged
      assert.deepStrictEqual(tiers(), { own: "privileged" })
      const demo = yield* application("demo", { reads: ["look"], writes: ["put", LONG] })
      const long = client.library.list().find(({ name }) => name.length === 64)?.name ?? ""
      assert.match(long, /^demo__x+_[0-9a-f]{12}$/)
      const there: Readonly<Record<string, Tier>> = {
        own: "privileged",
        demo__look: "read",
        demo__put: "action",
        [long]: "action"
      }
      assert.deepStrictEqual(tiers(), there)
      assert.strictEqual(client.library.lookup("demo__look")?.category, "demo")
      assert.isUndefined(client.library.lookup("look"))

      demo.say({ type: "register", tools: [tool("later", { readOnly: true })] })
      assert.deepStrictEqual(tiers(), { ...there, demo__later: "read" })
      demo.say({ type: "unregister", names: ["put", LONG] })
      yield* until("they are gone", () => client.library.lookup("demo__put") === undefined)
      assert.deepStrictEqual(tiers(), { own: "privileged", demo__look: "read", demo__later: "read" })
      demo.close()
      yield* until("all are gone", () => client.library.lookup("demo__look") === undefined)
      assert.deepStrictEqual(tiers(), { own: "privileged" })
    })
  )

  it.effect("every request names the tools of that moment, under their public names and with their schemas", () =>
    Effect.gen(function* () {
      const { application, backend, client, say } = yield* bridged
      const demo = yield* application("demo", { reads: ["look"] })
      const run = liveRun()
      backend.on("start", run.reply)
      const turn = yield* say("hi")
      yield* turn.awaitTag("RunOpened")
      demo.say({ type: "register", tools: [tool("put", { parametersSchema: { type: "object", required: ["item"] } })] })
      demo.frames()
      demo.say({ type: "unregister", names: ["look"] })
      run.write(...suspends("req-1", delegated("a", "demo__put", { item: 1 })))
      run.close()
      yield* turn.awaitTag("ApprovalAsked")
      yield* client.approvals.decide({ conversationId: conversation, callId: CallId.make("a"), allow: true })
      yield* turn.awaitTag("CallStarted")
      demo.answer()
      assert.strictEqual(yield* turn.ended, "complete")
      const announced = [...backend.to("start"), ...backend.to("resume")].map(({ body }) => body.client.amendments.add)
      const spec = (name: string, input_schema: object) => ({
        kind: "inline",
        name: `demo__${name}`,
        description: `does ${name}`,
        input_schema
      })
      assert.deepStrictEqual(announced, [
        [spec("look", { type: "object" })],
        [spec("put", { type: "object", required: ["item"] })]
      ])
    })
  )

  it.effect("a read runs at once; a write runs after a yes, and with act mode at once", () =>
    Effect.gen(function* () {
      const { application, backend, client, say } = yield* bridged
      const demo = yield* application("demo", { reads: ["look"], writes: ["put"] })
      const calls = suspends("req-1", delegated("a", "demo__look", { at: 1 }), delegated("b", "demo__put", { at: 2 }))
      backend.on("start", lines(calls))
      const turn = yield* say("hi")
      yield* turn.awaitTag("ApprovalAsked")
      yield* turn.awaitTag("CallStarted")
      assert.deepStrictEqual(demo.answer(), ["look"])
      yield* client.approvals.decide({
        conversationId: conversation,
        callId: CallId.make("b"),
        allow: true
      })
      yield* turn.awaitTag("CallStarted", 2)
      assert.deepStrictEqual(demo.answer(), ["put"])
      assert.strictEqual(yield* turn.ended, "complete")
      assert.deepStrictEqual(posted(backend), [
        ["demo__look", { ran: "look", with: { at: 1 } }],
        ["demo__put", { ran: "put", with: { at: 2 } }]
      ])

      backend.on("start", lines(suspends("req-2", delegated("c", "demo__look"), delegated("d", "demo__put"))))
      const acting = yield* say("again", "act")
      yield* acting.awaitTag("CallStarted", 2)
      assert.deepStrictEqual(demo.answer(), ["look", "put"])
      assert.strictEqual(yield* acting.ended, "complete")
      assert.strictEqual(acting.of("ApprovalAsked").length, 0)
    })
  )

  it.effect(
    "a call whose application leaves, or whose tool was replaced while a person was asked, is an error and never a write",
    () =>
      Effect.gen(function* () {
        const { application, backend, client, say } = yield* bridged
        const demo = yield* application("demo", { reads: ["look"], writes: ["put"] })
        backend.on("start", lines(suspends("req-1", delegated("a", "demo__look"), delegated("b", "demo__put"))))
        const turn = yield* say("hi")
        yield* turn.awaitTag("ApprovalAsked")
        yield* turn.awaitTag("CallStarted")
        demo.close()
        yield* until("it left", () => client.library.lookup("demo__put") === undefined)
        const again = yield* application("demo", { writes: ["put"] })
        yield* client.approvals.decide({
          conversationId: conversation,
          callId: CallId.make("b"),
          allow: true
        })
        assert.strictEqual(yield* turn.ended, "complete")
        assert.deepStrictEqual(again.answer(), [])
        for (const [name, problem] of posted(backend))
          assert.match(String(problem), /left|disconnect|gone|closed/i, name)
        assert.strictEqual(posted(backend).length, 2)
      })
  )

  it.effect("an application may be called like another executor's tools: what we announced is ours", () =>
    Effect.gen(function* () {
      const { application, backend, say } = yield* bridged
      const shop = yield* application("local_shop", { reads: ["look"] })
      const mcp = yield* application("mcp", { reads: ["look"] })
      backend.on(
        "start",
        lines(
          suspends(
            "req-1",
            delegated("a", "local_shop__look"),
            delegated("b", "mcp__look"),
            delegated("c", "local_other"),
            delegated("d", "mcp__other"),
            delegated("e", "local_shop__look", {}, { target_instance_id: "desk" })
          )
        )
      )
      const turn = yield* say("hi")
      yield* turn.awaitTag("CallStarted", 2)
      assert.deepStrictEqual([...shop.answer(), ...mcp.answer()], ["look", "look"])
      yield* turn.ended
      assert.deepStrictEqual(
        turn.of("CallLeft").map(({ callId }) => String(callId)),
        ["c", "d", "e"]
      )
      assert.deepStrictEqual(
        posted(backend).map(([name]) => name),
        ["local_shop__look", "mcp__look"]
      )
    })
  )

  it.effect("a tool of our own hides an application's of the same name", () =>
    Effect.gen(function* () {
      const { application, client } = yield* bridged
      yield* application("demo", { writes: ["own"] })
      yield* client.library.register(counting("demo__own", "read").tool)
      assert.strictEqual(client.library.lookup("demo__own")?.tier, "read")
      assert.strictEqual(client.library.list().filter(({ name }) => name === "demo__own").length, 1)
    })
  )
})
