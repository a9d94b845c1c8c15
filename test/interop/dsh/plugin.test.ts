/** The plugin in the real harness, with the peer's published client behind it. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import type { Context } from "@deepseek-ai/cordis"
import type { ToolDefinition, ToolExecution } from "@deepseek-ai/dsh-tools"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { createFrontendToolsClient } from "dsh-frontend-tools-client"
import { Effect, Fiber, Schedule } from "effect"
import * as Plugin from "../../../src/index.ts"
import type { DshExecution, DshToolDefinition } from "../../../src/layers/host/DshApi.ts"
import { generateClientKey } from "../../../src/protocol.ts"
import {
  agentInTurn,
  answerWith,
  bootHarness,
  connect,
  execute,
  KEY,
  listed,
  openShop,
  ROW,
  textOf
} from "./harness.ts"

const reason = (label: string) =>
  `前端工具写操作 "${label}"：该工具被应用声明为写操作，需人工批准后才会转发给应用执行。`

const noChannel = (name: string) => `Error: tool "${name}" requires approval, but no approval channel is available`

const entryOf = (ctx: Context) => {
  for (const entry of ctx.loader.entries()) if (entry.options.id === ROW || entry.id === ROW) return entry
  return assert.fail("the plugin's row is not there")
}

const never = () => new Promise<string>(() => {})

const eventually = (holds: () => boolean) =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.fail("not yet"))).pipe(
    Effect.retry(Schedule.spaced("5 millis")),
    Effect.timeout("5 seconds")
  )

describe("the plugin's shape", () => {
  it("is what the loader reads: four named exports and no default", () => {
    assert.strictEqual(Plugin.name, "frontend-tools-bridge")
    assert.deepStrictEqual(Plugin.inject, ["tools"])
    assert.isFunction(Plugin.apply)
    assert.notProperty(Plugin, "default")
  })

  it("takes the harness's own types", () => {
    expectTypeOf<ToolExecution>().toExtend<DshExecution>()
    expectTypeOf<DshToolDefinition["execute"]>().toExtend<ToolDefinition["execute"]>()
    expectTypeOf<DshToolDefinition["parameters"]>().toExtend<Readonly<ToolDefinition["parameters"]>>()
  })

  it("fills its configuration in and takes null for an absent field", () => {
    const { validate } = Plugin.Config["~standard"]
    const defaults = { port: 31870, callTimeoutMs: 30_000, maxTools: 200, staticClients: [] }
    for (const value of [undefined, null, {}, { port: null, stateDir: null, staticClients: null, unknown: 1 }]) {
      const result = validate(value)
      assert.isUndefined("issues" in result ? result.issues : undefined)
      assert.deepInclude("value" in result ? result.value : {}, defaults)
    }
    for (const value of [
      { port: 65_536 },
      { callTimeoutMs: 0 },
      { stateDir: "" },
      { staticClients: [{ namespace: "a" }] },
      5
    ]) {
      assert.property(validate(value), "issues")
    }
  })
})

describe("a read tool", () => {
  it.live("runs without asking, with no answerer and no agent, and reads as pretty JSON", () =>
    Effect.gen(function* () {
      const { ctx, ran } = yield* openShop()
      const result = yield* execute(ctx, "shop__cart", { user: "ann" })
      assert.deepStrictEqual(result.value, { items: 2 })
      assert.strictEqual(textOf(result), '{\n  "items": 2\n}')
      assert.deepStrictEqual(ran, [["cart", { user: "ann" }]])
      const signal = new AbortController().signal
      const mode = (name: string): unknown =>
        Reflect.apply(ctx.tools.executionMode, ctx.tools, [{ callId: "mode", name, arguments: {}, signal }])
      assert.deepStrictEqual(mode("shop__cart"), { kind: "parallel" })
      assert.deepStrictEqual(mode("shop__order"), { kind: "exclusive" })
    })
  )

  it.live("does not run with arguments that break its schema", () =>
    Effect.gen(function* () {
      const { ctx, ran } = yield* openShop()
      assert.strictEqual(
        textOf(yield* execute(ctx, "shop__cart", { user: 5 })),
        'Error: invalid arguments for tool "shop__cart": "user" must be a string'
      )
      assert.deepStrictEqual(ran, [])
    })
  )
})

describe("a write tool", () => {
  it.live("runs after allowed-once, and asks again for the next call", () =>
    Effect.gen(function* () {
      const { agent, ctx, ran } = yield* openShop()
      const { asked } = answerWith(ctx, "allowed-once")
      assert.deepStrictEqual((yield* execute(ctx, "shop__order", { user: "ann" }, { agent })).value, { ok: 1 })
      yield* execute(ctx, "shop__order", { user: "bob" }, { agent })
      assert.deepStrictEqual(ran, [
        ["order", { user: "ann" }],
        ["order", { user: "bob" }]
      ])
      assert.deepStrictEqual(
        asked.map((request) => [request.toolName, request.reason]),
        [
          ["shop__order", reason("shop.order")],
          ["shop__order", reason("shop.order")]
        ]
      )
    })
  )

  for (const [name, outcome, text] of [
    ["rejected", "rejected", 'Error: the user rejected tool "shop__order"'],
    ["cancelled", "cancelled", 'Error: approval for tool "shop__order" was cancelled'],
    ["answered with nonsense", "yes please", noChannel("shop__order")],
    ["unavailable", "unavailable", noChannel("shop__order")]
  ] as const) {
    it.live(`does not run when it is ${name}`, () =>
      Effect.gen(function* () {
        const { agent, ctx, ran } = yield* openShop()
        answerWith(ctx, outcome)
        assert.strictEqual(textOf(yield* execute(ctx, "shop__order", {}, { agent })), text)
        assert.deepStrictEqual(ran, [])
      })
    )
  }

  it.live("does not run without an answerer, an approval service, an agent or an open turn", () =>
    Effect.gen(function* () {
      const { agent, ctx, ran } = yield* openShop()
      assert.strictEqual(textOf(yield* execute(ctx, "shop__order", {}, { agent })), noChannel("shop__order"))
      answerWith(ctx, "allowed-once")
      assert.include(textOf(yield* execute(ctx, "shop__order", {})), "has no agent to route it through")
      const outside = { session: ctx.sessions.create() }
      assert.include(textOf(yield* execute(ctx, "shop__order", {}, { agent: outside })), "outside an open turn")
      const bare = yield* openShop({ approval: false })
      assert.strictEqual(
        textOf(yield* execute(bare.ctx, "shop__order", {}, { agent: bare.agent })),
        `Error: ${reason("shop.order")}`
      )
      assert.deepStrictEqual([ran, bare.ran], [[], []])
    })
  )

  it.live("asks nobody about arguments that break its schema", () =>
    Effect.gen(function* () {
      const { agent, ctx } = yield* openShop()
      const { asked } = answerWith(ctx, "allowed-once")
      assert.include(textOf(yield* execute(ctx, "shop__order", { user: 5 }, { agent })), "invalid arguments")
      assert.deepStrictEqual(asked, [])
    })
  )

  it.live("does not run when an earlier listener allows it by itself", () =>
    Effect.gen(function* () {
      const { agent, ctx, ran } = yield* openShop({
        before: (context) => {
          context.on("tools/pre-execute", () => Promise.resolve({ kind: "allow" }))
        }
      })
      // Ours is in front of it and asks.
      assert.strictEqual(textOf(yield* execute(ctx, "shop__order", {}, { agent })), noChannel("shop__order"))
      // One that gets in front of ours opens nothing either.
      ctx.on("tools/pre-execute", () => Promise.resolve({ kind: "allow" }), { prepend: true })
      assert.strictEqual(
        textOf(yield* execute(ctx, "shop__order", {}, { agent })),
        'Error: no approval was given for this call of tool "shop__order"'
      )
      assert.deepStrictEqual(ran, [])
    })
  )

  it.live("does not run on a grant given before its tool was registered anew", () =>
    Effect.gen(function* () {
      const { agent, client, ctx, ran } = yield* openShop()
      let grant: (outcome: string) => void = () => {}
      const { asked } = answerWith(ctx, () => new Promise((resolve) => (grant = resolve)))
      const call = yield* Effect.forkChild(execute(ctx, "shop__order", {}, { agent }), { startImmediately: true })
      yield* eventually(() => asked.length === 1)
      yield* Effect.promise(async () => {
        await client.unregisterTools(["order"])
        await client.registerTools([
          {
            name: "order",
            description: "another",
            parametersSchema: { type: "object" },
            execute: async () => ran.push(["other", {}])
          }
        ])
      })
      grant("allowed-once")
      assert.strictEqual(
        textOf(yield* Fiber.join(call)),
        'Error: no approval was given for this call of tool "shop__order"'
      )
      assert.deepStrictEqual(ran, [])
    })
  )

  it.live("is withdrawn at once when the caller aborts while the question is open", () =>
    Effect.gen(function* () {
      const { agent, ctx, ran } = yield* openShop()
      const { asked } = answerWith(ctx, never)
      const controller = new AbortController()
      const call = yield* Effect.forkChild(execute(ctx, "shop__order", {}, { agent, signal: controller.signal }), {
        startImmediately: true
      })
      yield* eventually(() => asked.length === 1)
      controller.abort()
      assert.strictEqual((yield* Fiber.join(call)).error?.info?.code, "ABORTED_BEFORE_DISPATCH")
      assert.deepStrictEqual(ran, [])
    })
  )

  it.live("leaves everybody else's tools alone, whatever they are called", () =>
    Effect.gen(function* () {
      const { ctx } = yield* openShop()
      for (const name of ["constructor", "toString", "mine"]) {
        ctx.tools.register({
          name,
          description: "",
          parameters: { type: "object" },
          output: { schema: {}, render: () => [{ type: "text", text: "theirs" }] },
          execute: async () => 1
        })
        assert.strictEqual((yield* execute(ctx, name, {})).value, 1)
      }
    })
  )
})

describe("the end of a call", () => {
  it.live("is the caller's abort", () =>
    Effect.gen(function* () {
      const { begun, ctx } = yield* openShop()
      const controller = new AbortController()
      const call = yield* Effect.forkChild(execute(ctx, "shop__hang", {}, { signal: controller.signal }))
      yield* begun
      controller.abort()
      const result = yield* Fiber.join(call)
      assert.strictEqual(textOf(result), 'Error: frontend-tools call to "hang" was aborted by the caller')
      assert.isUndefined(result.error?.info)
    })
  )

  it.live("comes before it starts when the signal has aborted already", () =>
    Effect.gen(function* () {
      const { ctx, ran } = yield* openShop()
      const result = yield* execute(ctx, "shop__cart", {}, { signal: AbortSignal.abort() })
      assert.strictEqual(result.error?.info?.code, "ABORTED_BEFORE_DISPATCH")
      // Past the harness's own check too: a definition called directly sends nothing.
      const definition = ctx.tools.get("shop__cart")
      const direct: unknown = yield* Effect.flip(
        Effect.tryPromise({
          try: () => Reflect.get(Object(definition), "execute")({}, { signal: AbortSignal.abort() }),
          catch: (error) => error
        })
      )
      assert.include(String(direct), 'call to "cart" was aborted by the caller')
      assert.deepStrictEqual(ran, [])
    })
  )

  it.live("is the deadline", () =>
    Effect.gen(function* () {
      const { ctx } = yield* openShop({ config: { callTimeoutMs: 80 } })
      assert.strictEqual(
        textOf(yield* execute(ctx, "shop__hang", {})),
        'Error: frontend-tools call to "hang" timed out after 80ms without a callResult'
      )
    })
  )

  it.live("is the application's leaving, which takes its tools along", () =>
    Effect.gen(function* () {
      const { begun, client, ctx } = yield* openShop()
      const call = yield* Effect.forkChild(execute(ctx, "shop__hang", {}))
      yield* begun
      client.disconnect()
      assert.strictEqual(
        textOf(yield* Fiber.join(call)),
        "Error: frontend-tools connection closed before the call settled"
      )
      assert.strictEqual(textOf(yield* execute(ctx, "shop__cart", {})), 'Error: unknown tool "shop__cart"')
    })
  )
})

describe("the admin tools", () => {
  it.live("register, list and revoke, with approval for the writes, and show no key", () =>
    Effect.gen(function* () {
      const { agent, ctx, port, stateDir } = yield* openShop()
      const { asked } = answerWith(ctx, "allowed-once")
      const key = generateClientKey()
      const seen = [yield* execute(ctx, "frontend_tools_register_client", { namespace: "desk", key }, { agent })]
      assert.deepInclude(seen[0]?.value, { namespace: "desk", url: `ws://127.0.0.1:${port}`, replaced: false })
      assert.strictEqual(statSync(join(stateDir, "frontend-tools-clients.json")).mode & 0o777, 0o600)
      const desk = yield* connect(port, key)
      seen.push(yield* execute(ctx, "frontend_tools_list_clients", {}))
      assert.deepStrictEqual(seen[1]?.value, {
        clients: [
          { namespace: "desk", connected: true, toolCount: 0 },
          { namespace: "shop", connected: true, toolCount: 3 }
        ]
      })
      seen.push(yield* execute(ctx, "frontend_tools_register_client", { namespace: "desk", key: `${key}!` }, { agent }))
      seen.push(yield* execute(ctx, "frontend_tools_register_client", { namespace: "other", key }, { agent }))
      seen.push(yield* execute(ctx, "frontend_tools_revoke_client", { namespace: "desk" }, { agent }))
      assert.deepStrictEqual(seen[4]?.value, { namespace: "desk", revoked: true, connectionDropped: true })
      yield* eventually(() => desk.state === "disconnected")
      assert.deepStrictEqual(
        asked.map((request) => request.reason),
        ["register_client", "register_client", "register_client", "revoke_client"].map((tool) =>
          reason(`frontend_tools.${tool}`)
        )
      )
      assert.notInclude(JSON.stringify(seen), key)
    })
  )

  it.live("write only with approval", () =>
    Effect.gen(function* () {
      const { agent, ctx, stateDir } = yield* openShop()
      const name = "frontend_tools_register_client"
      const result = yield* execute(ctx, name, { namespace: "desk", key: generateClientKey() }, { agent })
      assert.strictEqual(textOf(result), noChannel(name))
      assert.isFalse(existsSync(join(stateDir, "frontend-tools-clients.json")))
    })
  )
})

describe("schemas", () => {
  it.live("are refused by tool, path and keyword, and the batch with them", () =>
    Effect.gen(function* () {
      const { client, ctx } = yield* openShop()
      // The peer's client never settles a refused batch, so its answer is not waited for.
      const good = { name: "good", description: "", parametersSchema: { type: "object" }, execute: async () => 1 }
      client
        .registerTools([
          good,
          {
            ...good,
            name: "bad",
            parametersSchema: { type: "object", properties: { n: { type: "number", minimum: 0 } } }
          }
        ])
        .catch(() => {})
      assert.deepStrictEqual(yield* Effect.promise(() => client.unregisterTools(["good", "bad"])), [])
      assert.deepStrictEqual(
        listed(ctx).filter((name) => /good|bad/.test(name)),
        []
      )
    })
  )
})

describe("loading fails", () => {
  const fails = (name: string, config: object, message: string, roster?: string) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(
          bootHarness({
            config: { port: 0, ...config },
            prepare: (stateDir) => {
              if (roster !== undefined) writeFileSync(join(stateDir, "frontend-tools-clients.json"), roster)
            }
          })
        )
        assert.include(error.message, message)
      })
    )

  const one = { namespace: "a", key: "1" }
  fails("on a malformed roster", {}, "frontend-tools client roster is not valid JSON: SyntaxError", "{")
  fails(
    "on a roster that repeats a namespace",
    {},
    'repeats namespace "a"',
    JSON.stringify([one, { ...one, key: "2" }])
  )
  fails(
    "on static clients that collide",
    { staticClients: [one, { ...one, key: "2" }] },
    'static client namespace "a" collides with the registered roster'
  )
  fails(
    "on a static client the roster has",
    { staticClients: [one] },
    "collides",
    JSON.stringify([{ ...one, key: "2" }])
  )
  fails(
    "on an empty static key",
    { staticClients: [{ ...one, key: "" }] },
    'static client "a" must carry a non-empty key'
  )
  fails("on a port out of range", { port: 65_536 }, "invalid config")
  fails("on a deadline of nothing", { callTimeoutMs: 0 }, "invalid config")
  fails("on a state folder that is no text", { stateDir: 5 }, "invalid config")

  it.live("on a port that is taken, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const blocker = createServer()
      yield* Effect.promise(() => new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve)))
      const address = blocker.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const error = yield* Effect.flip(bootHarness({ config: { port } }))
      assert.include(error.message, `: listen EADDRINUSE: address already in use 127.0.0.1:${port}`)
      yield* Effect.promise(() => new Promise((resolve) => blocker.close(resolve)))
    })
  )
})

describe("unloading", () => {
  it.live("closes the listener, takes every tool back, rejects what is in flight, and then returns", () =>
    Effect.gen(function* () {
      const { begun, ctx, port } = yield* openShop()
      const call = yield* Effect.forkChild(execute(ctx, "shop__hang", {}))
      yield* begun
      yield* Effect.promise(async () => entryOf(ctx).fiber?.dispose())
      assert.deepStrictEqual(listed(ctx), [])
      assert.strictEqual(
        textOf(yield* Fiber.join(call)),
        "Error: frontend-tools connection closed before the call settled"
      )
      const refused = yield* Effect.exit(
        Effect.tryPromise(() =>
          createFrontendToolsClient({ url: `ws://127.0.0.1:${port}`, key: KEY, reconnect: false }).connect()
        )
      )
      assert.strictEqual(refused._tag, "Failure")
      // The gate is gone too: another plugin's tool of the same name is nobody's business.
      ctx.tools.register({
        name: "shop__order",
        description: "",
        parameters: { type: "object" },
        output: { schema: {}, render: () => [] },
        execute: async () => "theirs"
      })
      assert.strictEqual((yield* execute(ctx, "shop__order", {})).value, "theirs")
    })
  )

  it.live("lets the row load again on the same port at once, when its configuration is edited", () =>
    Effect.gen(function* () {
      const { ctx, port } = yield* openShop()
      const entry = entryOf(ctx)
      yield* Effect.promise(async () => {
        await entry.update({ config: { ...Object(entry.options.config), callTimeoutMs: 50 } })
        await ctx.loader.await()
      })
      assert.deepStrictEqual(
        listed(ctx).filter((name) => name.startsWith("shop__")),
        []
      )
      const client = yield* connect(port, KEY)
      yield* Effect.promise(() =>
        client.registerTools([
          {
            name: "hang",
            description: "",
            readOnly: true,
            parametersSchema: { type: "object" },
            execute: () => new Promise(() => {})
          }
        ])
      )
      assert.include(textOf(yield* execute(ctx, "shop__hang", {})), "timed out after 50ms")
    })
  )
})

describe("the roster", () => {
  it.live("is in the harness's state folder, and survives a restart", () =>
    Effect.gen(function* () {
      const { agent, ctx, stateDir } = yield* openShop()
      answerWith(ctx, "allowed-once")
      const key = generateClientKey()
      yield* execute(ctx, "frontend_tools_register_client", { namespace: "desk", key }, { agent })
      const stored = readFileSync(join(stateDir, "frontend-tools-clients.json"), "utf8")
      const again = yield* openShop({
        prepare: (folder) => writeFileSync(join(folder, "frontend-tools-clients.json"), stored)
      })
      yield* connect(again.port, key)
      assert.isDefined(agentInTurn(again.ctx))
    })
  )
})
