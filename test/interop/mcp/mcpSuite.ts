/**
 * What any program that serves the bridge's tools over MCP has to do for the real
 * MCP clients: the official SDK's and Effect's.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import {
  CallToolResultSchema,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
  ToolListChangedNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
import { type Cause, Effect, Fiber, Queue, Schedule, type Scope, Stream } from "effect"
import { McpClient, McpProtocol, type McpSchema } from "effect/ai"
import { ChildProcess } from "effect/process"
import { initialize, makeWire, modernMeta } from "../../support/McpWire.ts"

/** One program to start. */
export interface McpTarget {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** Connects the shop to the running program, until the scope closes. */
  readonly connect: Effect.Effect<void, never, Scope.Scope>
  /** Whether the program writes `wait aborted` to stderr when the call of `wait` was given up. */
  readonly tellsAborts: boolean
}

/** Prepares the program with these arguments after its own. */
export type McpTargetOf = (extra: ReadonlyArray<string>) => Effect.Effect<McpTarget, never, Scope.Scope>

const MIRRORED = ["shop__add_item", "shop__fail", "shop__list_items", "shop__set_extra", "shop__wait"]
const STABLE = ["frontend_tools_call_tool", "frontend_tools_list_tools"]

const eventually = <A, E>(effect: Effect.Effect<A, E>) =>
  effect.pipe(Effect.retry(Schedule.spaced("50 millis")), Effect.timeout("10 seconds"), Effect.orDie)

/** Waits until the shop's tools are on the list. */
const untilConnected = <E>(names: Effect.Effect<ReadonlyArray<string>, E>) =>
  eventually(
    Effect.gen(function* () {
      const listed = yield* names
      if (!MIRRORED.every((name) => listed.includes(name))) return yield* Effect.fail("not there yet")
      return listed
    })
  )

type Answer = (request: ElicitRequest) => ElicitResult

/** The official SDK's client, connected. Without an `answer` it does not say that it could elicit. */
const sdkClient = Effect.fnUntraced(function* (
  targetOf: McpTargetOf,
  answer?: Answer,
  extra: ReadonlyArray<string> = []
) {
  const target = yield* targetOf(extra)
  const transport = new StdioClientTransport({
    command: target.command,
    args: [...target.args],
    env: { PATH: process.env.PATH ?? "", ...target.env },
    stderr: "pipe"
  })
  let stderr = ""
  transport.stderr?.on("data", (chunk: Buffer) => {
    stderr += String(chunk)
  })
  const client = new Client(
    { name: "sdk", version: "1.0.0" },
    { capabilities: answer === undefined ? {} : { elicitation: { form: {} } } }
  )
  const changes = yield* Queue.unbounded<void, Cause.Done>()
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void Queue.offerUnsafe(changes, undefined))
  if (answer !== undefined) client.setRequestHandler(ElicitRequestSchema, answer)
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect(transport)),
    () => Effect.promise(() => client.close())
  )
  yield* target.connect
  const names = Effect.map(
    Effect.promise(() => client.listTools()),
    ({ tools }) => tools.map(({ name }) => name)
  )
  yield* untilConnected(names)
  const call = (name: string, args: Record<string, unknown> = {}, signal?: AbortSignal) =>
    Effect.promise(() =>
      client
        .callTool({ name, arguments: args }, CallToolResultSchema, signal && { signal })
        .then(CallToolResultSchema.parse)
    )
  return { client, target, names, call, changes, stderr: () => stderr }
})

/** Effect's client of one revision, connected. */
const effectClient = Effect.fnUntraced(function* (
  targetOf: McpTargetOf,
  protocol: McpProtocol.ProtocolAdapter<McpClient.ProtocolVersion>
) {
  const target = yield* targetOf([])
  const transport = yield* McpClient.stdio({
    command: ChildProcess.make(target.command, target.args, { env: { ...target.env }, extendEnv: true }),
    protocol
  })
  const client = yield* McpClient.make({ name: "effect", version: "1.0.0" }).pipe(
    Effect.provideService(McpClient.Transport, transport)
  )
  yield* target.connect
  const names = Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name))
  yield* untilConnected(names)
  const tools = yield* client.listTools()
  const call = (name: string, args: Record<string, unknown> = {}) => {
    const tool = tools.find((one) => one.name === name)
    return tool === undefined ? Effect.die(`no tool ${name}`) : client.callTool({ tool, arguments: args })
  }
  return { client, transport, tools, names, call }
})

/** The bare process with a bare wire to it. */
const bareProcess = Effect.fnUntraced(function* (targetOf: McpTargetOf) {
  const target = yield* targetOf([])
  const input = yield* Queue.unbounded<string, Cause.Done>()
  const child = yield* ChildProcess.make(target.command, target.args, {
    env: { ...target.env },
    extendEnv: true,
    stdin: Stream.encodeText(Stream.fromQueue(input))
  })
  yield* Stream.runDrain(child.stderr).pipe(Effect.ignore, Effect.forkScoped)
  const wire = yield* makeWire({
    write: (text) => Effect.sync(() => void Queue.offerUnsafe(input, text)),
    output: child.stdout
  })
  const connect = target.connect.pipe(
    Effect.andThen(
      untilConnected(
        Effect.map(wire.request("tools/list", modernMeta()), ({ result }) =>
          result.tools.map((tool: { readonly name: string }) => tool.name)
        )
      )
    )
  )
  return { wire, connect, exitCode: child.exitCode, end: Queue.end(input) }
})

const textOf = (result: { readonly content: ReadonlyArray<unknown> }) =>
  result.content.map((block) =>
    typeof block === "object" && block !== null && "text" in block ? block.text : undefined
  )

const REFUSAL = /^Error: tool "shop__add_item" writes, .* does not support elicitation\. Nothing was run\./

export const mcpSuite = (name: string, targetOf: McpTargetOf) => {
  describe(`${name}, with the official SDK's client`, { timeout: 30_000 }, () => {
    it.live("lists the tools, sorted, with their schemas and hints", () =>
      Effect.gen(function* () {
        const { client } = yield* sdkClient(targetOf)
        const { tools } = yield* Effect.promise(() => client.listTools())
        const names = tools.map((tool) => tool.name)
        assert.deepStrictEqual(names, [...names].sort())
        assert.includeMembers(names, [...STABLE, ...MIRRORED])
        const [list, add] = ["shop__list_items", "shop__add_item"].map((one) => tools.find((tool) => tool.name === one))
        assert.strictEqual(list?.annotations?.readOnlyHint, true)
        assert.deepStrictEqual(list?.outputSchema?.required, ["items"])
        assert.strictEqual(add?.annotations?.readOnlyHint, false)
        assert.deepStrictEqual(add?.inputSchema.required, ["item"])
      })
    )

    it.live("calls, by name and through the stable tools", () =>
      Effect.gen(function* () {
        const { call } = yield* sdkClient(targetOf)
        const expected = {
          content: [{ type: "text" as const, text: '{\n  "items": []\n}' }],
          structuredContent: { items: [] }
        }
        assert.deepStrictEqual(yield* call("shop__list_items"), expected)
        assert.deepStrictEqual(yield* call("frontend_tools_call_tool", { name: "shop__list_items" }), expected)
        const failed = yield* call("shop__fail")
        assert.isTrue(failed.isError)
        assert.deepStrictEqual(textOf(failed), ["Error: frontend-tools call failed (internal): out of milk"])
        const listed = yield* call("frontend_tools_list_tools", { namespace: "shop" })
        assert.strictEqual(JSON.stringify(listed.structuredContent).match(/"name"/g)?.length, MIRRORED.length)
      })
    )

    it.live("tells of tools that come and go", () =>
      Effect.gen(function* () {
        const { call, changes, names } = yield* sdkClient(targetOf)
        yield* Queue.clear(changes)
        yield* call("shop__set_extra", { on: true })
        yield* Queue.take(changes)
        assert.include(yield* names, "shop__extra")
        assert.deepStrictEqual(textOf(yield* call("shop__extra")), ['"extra"'])
        yield* call("shop__set_extra", { on: false })
        yield* Queue.take(changes)
        assert.notInclude(yield* names, "shop__extra")
      })
    )

    it.live("lets the client cancel a call, and goes on", () =>
      Effect.gen(function* () {
        const { call, stderr, target } = yield* sdkClient(targetOf)
        const controller = new AbortController()
        const waiting = yield* Effect.forkChild(Effect.exit(call("shop__wait", {}, controller.signal)), {
          startImmediately: true
        })
        yield* call("shop__list_items")
        controller.abort("enough")
        assert.strictEqual((yield* Fiber.join(waiting))._tag, "Failure")
        yield* call("shop__list_items")
        if (target.tellsAborts) {
          yield* eventually(
            Effect.suspend(() => (stderr().includes("wait aborted") ? Effect.void : Effect.fail("not aborted yet")))
          )
        }
      })
    )

    it.live("asks for each write, and runs it only after a yes", () =>
      Effect.gen(function* () {
        const questions: Array<string> = []
        const answers: Array<ElicitResult> = [
          { action: "decline" },
          { action: "cancel" },
          { action: "accept", content: {} },
          { action: "decline" }
        ]
        const { call } = yield* sdkClient(targetOf, ({ params }) => {
          questions.push(params.message)
          return answers.shift() ?? { action: "cancel" }
        })
        const texts = []
        for (const item of ["a", "b", "c", "d"]) texts.push((yield* call("shop__add_item", { item })).isError ?? false)
        assert.deepStrictEqual(texts, [true, true, false, true])
        assert.deepStrictEqual((yield* call("shop__list_items")).structuredContent, { items: ["c"] })
        assert.strictEqual(questions.length, 4)
        for (const part of ["Application: shop", "Tool: add_item (shop__add_item)", '"item": "a"']) {
          assert.include(questions[0], part)
        }
      })
    )

    it.live("refuses a write to a client without elicitation", () =>
      Effect.gen(function* () {
        const { call } = yield* sdkClient(targetOf)
        const refused = yield* call("frontend_tools_call_tool", { name: "shop__add_item", arguments: { item: "a" } })
        assert.isTrue(refused.isError)
        assert.match(String(textOf(refused)[0]), REFUSAL)
        assert.deepStrictEqual((yield* call("shop__list_items")).structuredContent, { items: [] })
      })
    )

    it.live("writes without asking when it was started so", () =>
      Effect.gen(function* () {
        const { call, stderr } = yield* sdkClient(targetOf, undefined, ["--approve-writes", "always"])
        yield* call("shop__add_item", { item: "a" })
        assert.deepStrictEqual((yield* call("shop__list_items")).structuredContent, { items: ["a"] })
        assert.include(stderr(), "writes run without asking anybody")
      })
    )
  })

  for (const protocol of [McpProtocol.v2026_07_28, McpProtocol.v2025_11_25]) {
    describe(`${name}, with Effect's client of revision ${protocol.protocolVersion}`, { timeout: 30_000 }, () => {
      it.live("lists, calls, cancels, sees changes and is refused a write", () =>
        Effect.gen(function* () {
          const { call, client, names, tools } = yield* effectClient(targetOf, protocol)
          assert.strictEqual(client.protocolVersion, protocol.protocolVersion)
          assert.strictEqual(tools.find((tool) => tool.name === "shop__list_items")?.annotations?.readOnlyHint, true)
          const listed: McpSchema.CallToolResult = yield* call("shop__list_items")
          assert.deepStrictEqual(listed.structuredContent, { items: [] })

          const waiting = yield* Effect.forkChild(call("shop__wait"), { startImmediately: true })
          yield* call("shop__list_items")
          yield* Fiber.interrupt(waiting)

          yield* call("shop__set_extra", { on: true })
          assert.include(yield* names, "shop__extra")
          yield* call("shop__set_extra", { on: false })
          assert.notInclude(yield* names, "shop__extra")

          const refused = yield* call("shop__add_item", { item: "a" })
          assert.isTrue(refused.isError)
          assert.match(String(textOf(refused)[0]), REFUSAL)
        }).pipe(Effect.provide(NodeServices.layer))
      )
    })
  }

  describe(`${name}, with Effect's transport of revision 2026-07-28`, { timeout: 30_000 }, () => {
    // Effect's client declares no elicitation, so these requests are put together by hand.
    it.live("asks in rounds, and runs a write only after a yes", () =>
      Effect.gen(function* () {
        const { call, transport } = yield* effectClient(targetOf, McpProtocol.v2026_07_28)
        let id = 1000
        const request = Effect.fnUntraced(function* (item: string, more: object = {}) {
          const response = yield* transport.request({
            jsonrpc: "2.0",
            id: id++,
            method: "tools/call",
            params: {
              name: "shop__add_item",
              arguments: { item },
              ...more,
              ...modernMeta({ elicitation: { form: {} } })
            }
          })
          return "result" in response ? response.result : yield* Effect.die(response.error)
        })
        for (const [item, action] of [
          ["a", "decline"],
          ["b", "accept"]
        ] as const) {
          const asked: unknown = yield* request(item)
          assert.propertyVal(asked, "resultType", "input_required")
          const requestState =
            typeof asked === "object" && asked !== null && "requestState" in asked && asked.requestState
          yield* request(item, { requestState, inputResponses: { approval: { action, content: {} } } })
        }
        assert.deepStrictEqual((yield* call("shop__list_items")).structuredContent, { items: ["b"] })
      }).pipe(Effect.provide(NodeServices.layer))
    )
  })

  describe(`${name}, on a bare wire`, { timeout: 30_000 }, () => {
    it.live("tells a subscriber of revision 2026-07-28 of tools that come and go", () =>
      Effect.gen(function* () {
        const { connect, wire } = yield* bareProcess(targetOf)
        yield* connect
        yield* Effect.forkChild(
          wire.request("subscriptions/listen", { notifications: { toolsListChanged: true }, ...modernMeta() })
        )
        assert.strictEqual((yield* Queue.take(wire.incoming)).method, "notifications/subscriptions/acknowledged")
        for (const on of [true, false]) {
          yield* wire.request("tools/call", { name: "shop__set_extra", arguments: { on }, ...modernMeta() })
          assert.strictEqual((yield* Queue.take(wire.incoming)).method, "notifications/tools/list_changed")
        }
      }).pipe(Effect.provide(NodeServices.layer))
    )

    it.live(
      "exits with 0 when the client closes its end, even with calls and a subscription open",
      () =>
        Effect.gen(function* () {
          const { connect, end, exitCode, wire } = yield* bareProcess(targetOf)
          yield* initialize(wire)
          yield* connect
          yield* wire.line("{ noise")
          yield* Effect.forkChild(wire.request("tools/call", { name: "shop__wait", ...modernMeta() }))
          yield* Effect.forkChild(
            wire.request("subscriptions/listen", { notifications: { toolsListChanged: true }, ...modernMeta() })
          )
          yield* wire.request("tools/list", modernMeta())
          yield* end
          assert.strictEqual(yield* exitCode, 0)
        }).pipe(Effect.provide(NodeServices.layer)),
      15_000
    )
  })
}
