import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Redacted, Schema, Scope } from "effect"
import { HttpServer } from "effect/http"
import { SqlClient } from "effect/sql"
import { type AgentEvent, ConversationId, Credentials, makeTool, type RunInput } from "../../src/aidream.ts"
import { CHROME_EXTENSION } from "../../src/layers/backend/Executor.ts"
import * as LoopbackServer from "../../src/layers/backend/LoopbackServer.ts"
import * as ScriptedModel from "../../src/layers/backend/ScriptedModel.ts"
import * as SqliteClient from "../../src/layers/backend/sql/SqliteClient.ts"
import type { CatalogTool } from "../../src/layers/backend/ToolCatalog.ts"
import { agent, type Client, startClient, storeOf, watch } from "../aidream/support/Client.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { browserState, lastResults } from "./support/backend.ts"

type Model = (request: ScriptedModel.ScriptedRequest) => ScriptedModel.ScriptedAnswer

interface Served {
  readonly url: string
  readonly port: number
  readonly stop: Effect.Effect<void>
}

/** The real backend over a real socket, in a scope of its own so that it can be stopped and started. */
const serve = Effect.fnUntraced(function* (
  model: Model,
  options: {
    readonly port?: number
    readonly filename?: string
    readonly catalog?: ReadonlyArray<CatalogTool>
  } = {}
) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.buildWithScope(
    LoopbackServer.layer({
      port: options.port ?? 0,
      database: { filename: options.filename ?? ":memory:", durability: "normal" },
      model: ScriptedModel.layer(model),
      catalog: options.catalog
    }),
    scope
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, port, stop: Scope.close(scope, Exit.void) } satisfies Served
})

const newConversation = () => ConversationId.make(crypto.randomUUID())

const said = (events: ReadonlyArray<AgentEvent>) =>
  events
    .flatMap((event) => (event._tag === "Stream" && event.event._tag === "chunk" ? [event.event.data.text] : []))
    .join("")

const send = (client: Client, conversationId: ConversationId, more: Partial<RunInput> = {}) =>
  watch(client.runs.run({ agentId: agent, message: "hi", conversationId, isNew: true, ...more }))

const once =
  (...tools: ReadonlyArray<string>): Model =>
  ({ prompt, step }) =>
    step === 0 ? { calls: tools.map((tool) => ({ tool })) } : { text: lastResults(prompt) }

/** A tool the client announces, or one of the backend's catalog, that counts its runs. */
const counting = (
  name: string,
  run: (args: Readonly<Record<string, unknown>>) => Effect.Effect<unknown, unknown> = () => Effect.succeed("done"),
  announce = true
) => {
  const runs: Array<Readonly<Record<string, unknown>>> = []
  const tool = makeTool({
    name,
    tier: "read",
    announce,
    parameters: Schema.Record(Schema.String, Schema.Unknown),
    run: (args) =>
      Effect.suspend(() =>
        Effect.andThen(
          Effect.sync(() => runs.push(args)),
          run(args)
        )
      )
  })
  return { tool, runs }
}

/** A tool that waits until the test lets it go. */
const waiting = Effect.fnUntraced(function* (name: string) {
  const started = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  const { runs, tool } = counting(name, () =>
    Deferred.succeed(started, undefined).pipe(Effect.andThen(Deferred.await(release)), Effect.as("waited"))
  )
  return { tool, runs, started, release }
})

const chromeTool = (name: string): CatalogTool => ({
  name,
  description: name,
  inputSchema: { type: "object", properties: {} },
  category: "forms",
  executors: [CHROME_EXTENSION]
})

const browser = {
  providers: [{ name: "browser-dom", state: () => Effect.succeed(browserState()) }]
}

describe("the client against the backend", () => {
  it.live("a turn with one delegated call", () =>
    Effect.gen(function* () {
      const served = yield* serve(once("look"))
      const look = counting("look", () => Effect.succeed({ title: "Home" }))
      const client = yield* startClient(served, { tools: [look.tool] })
      const turn = yield* send(client, newConversation())
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(said(turn.events), 'look:{"title":"Home"}')
      assert.strictEqual(look.runs.length, 1)
      assert.strictEqual(turn.of("RunOpened").length, 2)
      assert.deepStrictEqual(turn.of("StreamProblem"), [])
    })
  )

  it.live("parallel calls of different length, one of them failing: one resume with every answer", () =>
    Effect.gen(function* () {
      const served = yield* serve(once("fast", "slow", "broken"))
      const client = yield* startClient(served, {
        tools: [
          counting("fast").tool,
          counting("slow", () => Effect.as(Effect.sleep(100), "slept")).tool,
          counting("broken", () => Effect.fail(new Error("no such element"))).tool
        ]
      })
      const turn = yield* send(client, newConversation())
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(said(turn.events), 'fast:"done" slow:"slept" broken:!"no such element"')
      assert.strictEqual(turn.of("RunOpened").length, 2)
    })
  )

  it.live("several suspensions in one turn, then a second message in the conversation", () =>
    Effect.gen(function* () {
      const served = yield* serve(({ prompt, step }) =>
        step < 3 ? { calls: [{ tool: "look" }] } : { text: prompt.content.map(({ role }) => role).join(" ") }
      )
      const look = counting("look")
      const client = yield* startClient(served, { tools: [look.tool] })
      const id = newConversation()
      const first = yield* send(client, id)
      assert.strictEqual(yield* first.ended, "complete")
      assert.strictEqual(look.runs.length, 3)
      const second = yield* send(client, id, { message: "again", isNew: false })
      assert.strictEqual(yield* second.ended, "complete")
      const turn = "user assistant tool assistant tool assistant tool"
      assert.strictEqual(said(second.events), `system ${turn} assistant ${turn}`)
    })
  )

  it.live("discovery: the badge follows, loaded tools survive the suspension", () =>
    Effect.gen(function* () {
      const offered: Array<ReadonlyArray<string>> = []
      const served = yield* serve(
        (request) => {
          offered.push(request.tools)
          switch (request.step) {
            case 0:
              return { calls: [{ tool: "load_chrome_tools", arguments: { category: "forms" } }] }
            case 1:
              return { calls: [{ tool: "forms__fill_form", arguments: { name: "Ada" } }] }
            default:
              return { text: lastResults(request.prompt) }
          }
        },
        { catalog: [chromeTool("forms:fill_form"), chromeTool("forms:submit_form")] }
      )
      const fill = counting("fill_form", ({ name }) => Effect.succeed({ filled: name }), false)
      const client = yield* startClient(served, { tools: [fill.tool], capabilities: browser })
      const id = newConversation()
      const turn = yield* send(client, id)
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(said(turn.events), 'forms__fill_form:{"filled":"Ada"}')
      assert.deepStrictEqual(offered[2], ["load_chrome_tools", "forms__fill_form", "forms__submit_form"])
      assert.deepStrictEqual(client.active.of(id), {
        tools: ["forms__fill_form", "forms__submit_form"],
        count: 2,
        categories: ["forms"]
      })
    })
  )

  it.live("a tool this client does not have is answered with an error, and the turn goes on", () =>
    Effect.gen(function* () {
      const served = yield* serve(
        ({ prompt, step }) =>
          step === 0
            ? { calls: [{ tool: "load_chrome_tools", arguments: { category: "forms" } }] }
            : step === 1
              ? { calls: [{ tool: "forms__fill_form" }] }
              : { text: lastResults(prompt) },
        { catalog: [chromeTool("forms:fill_form")] }
      )
      const client = yield* startClient(served, { capabilities: browser })
      const turn = yield* send(client, newConversation())
      assert.strictEqual(yield* turn.ended, "complete")
      assert.match(said(turn.events), /^forms__fill_form:!/)
    })
  )

  it.live("cancelling settles the turn on both sides, and the conversation goes on", () =>
    Effect.gen(function* () {
      const served = yield* serve(({ step, userText }) =>
        userText === "again" ? { text: "here" } : step === 0 ? { calls: [{ tool: "wait" }] } : { text: "no" }
      )
      const wait = yield* waiting("wait")
      const client = yield* startClient(served, { tools: [wait.tool] })
      const id = newConversation()
      const turn = yield* send(client, id)
      yield* Deferred.await(wait.started)
      yield* turn.awaitTag("RunEnded")
      yield* client.runs.cancel(id)
      assert.strictEqual(yield* turn.ended, "cancelled")
      const next = yield* send(client, id, { message: "again", isNew: false, whenSuspended: "cancel" })
      assert.strictEqual(yield* next.ended, "complete", String(next.error))
      assert.strictEqual(said(next.events), "here")
    })
  )

  it.live("a guest is served, and another guest sees nothing of it", () =>
    Effect.gen(function* () {
      const served = yield* serve(once("wait"))
      const wait = yield* waiting("wait")
      const guest = (name: string) => Credentials.layerGuest(Redacted.make(name))
      const client = yield* startClient(served, { tools: [wait.tool], credentials: guest("ada") })
      const id = newConversation()
      const turn = yield* send(client, id)
      yield* Deferred.await(wait.started)
      const other = yield* startClient(served, { credentials: guest("bob") })
      const refused = yield* Effect.flip(other.api.pendingCalls(id))
      assert.strictEqual(refused.reason._tag, "Refused")
      yield* Deferred.succeed(wait.release, undefined)
      assert.strictEqual(yield* turn.ended, "complete")
    })
  )

  it.live("the backend is stopped while a tool runs and started again: the answer gets there", () =>
    Effect.gen(function* () {
      const filename = `${yield* temporaryFolder}/ledger.db`
      const first = yield* serve(once("wait"), { filename })
      const wait = yield* waiting("wait")
      const client = yield* startClient(first, { tools: [wait.tool] })
      const turn = yield* send(client, newConversation())
      yield* turn.awaitTag("RunEnded")
      yield* Deferred.await(wait.started)
      yield* first.stop
      yield* serve(once("wait"), { filename, port: first.port })
      yield* Deferred.succeed(wait.release, undefined)
      assert.strictEqual(yield* turn.ended, "complete")
      assert.strictEqual(said(turn.events), 'wait:"waited"')
      assert.strictEqual(wait.runs.length, 1)
    })
  )

  it.live("both are stopped and started in turn: the next client finds the call and finishes the turn", () =>
    Effect.gen(function* () {
      const filename = `${yield* temporaryFolder}/ledger.db`
      const disk = new Map<string, string>()
      const first = yield* serve(once("wait"), { filename })
      const id = newConversation()
      const wait = yield* waiting("wait")
      const life = yield* Scope.make()
      const client = yield* startClient(first, { tools: [wait.tool], store: storeOf(disk) }).pipe(Scope.provide(life))
      const turn = yield* send(client, id).pipe(Scope.provide(life))
      yield* turn.awaitTag("RunEnded")
      yield* Deferred.await(wait.started)

      // The client dies with its tool half done: what it wrote up to here is all there is.
      const survived = new Map(disk)
      yield* Scope.close(life, Exit.void)
      yield* first.stop
      yield* serve(once("wait"), { filename, port: first.port })

      const again = yield* waiting("wait")
      const reborn = yield* startClient(first, { tools: [again.tool], store: storeOf(survived) })
      yield* reborn.runs.recover
      yield* Deferred.succeed(again.release, undefined)
      const reopened = yield* watch(reborn.runs.open(id, { resume: true }))
      yield* reopened.ended
      const rows = yield* readRows(filename)
      assert.deepStrictEqual(rows.turns, [{ status: "completed" }])
      // Nobody knows whether the first run of the tool had its effect, so it is not run a second time.
      assert.strictEqual(again.runs.length, 0)
      assert.strictEqual(rows.calls.length, 1)
      assert.strictEqual(rows.calls[0]?.status, "error")
    })
  )
})

const readRows = (filename: string) =>
  SqlClient.SqlClient.use((sql) =>
    Effect.all({
      turns: sql<{ readonly status: string }>`SELECT status FROM user_requests`,
      calls: sql<{ readonly status: string }>`SELECT status FROM tool_calls`
    })
  ).pipe(Effect.provide(SqliteClient.layer({ filename })))
