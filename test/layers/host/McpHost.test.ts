import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { ApplicationError, CallError } from "../../../src/domain/bridge/BridgeError.ts"
import { PublicName } from "../../../src/domain/bridge/ToolName.ts"
import { readTool, writeTool } from "../../support/hostTools.ts"
import { initialize, modernMeta } from "../../support/McpWire.ts"
import { call, canAsk, errorText, listNames, start } from "../../support/mcpHost.ts"

const STABLE = ["frontend_tools_call_tool", "frontend_tools_list_tools"]

describe("McpHost", () => {
  describe("listing", () => {
    it.effect("shows each registered tool with its schemas and its class", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        const parametersSchema = {
          type: "object",
          properties: { id: { $ref: "#/$defs/id" } },
          $defs: { id: { type: "integer", minimum: 1, "x-own": true } },
          required: ["id"]
        }
        const outputSchema = { type: "object", properties: { n: { type: "integer" } } }
        yield* host.register(readTool("get", undefined, { parametersSchema, outputSchema, description: "Gets." }))
        yield* host.register(writeTool("put", undefined, { outputSchema: { type: "string" } }))
        yield* initialize(wire)

        const { result } = yield* wire.request("tools/list")
        const [get, put] = result.tools.slice(2)
        assert.deepStrictEqual(get, {
          name: "shop__get",
          title: "shop.get",
          description: "Gets.",
          inputSchema: parametersSchema,
          outputSchema,
          annotations: {
            title: "shop.get",
            readOnlyHint: true,
            destructiveHint: false,
            idempotentHint: false,
            openWorldHint: true
          }
        })
        assert.strictEqual(put.annotations.readOnlyHint, false)
        for (const params of [{}, modernMeta()]) {
          const { tools } = (yield* wire.request("tools/list", params)).result
          assert.notProperty(tools.at(-1), "outputSchema")
        }
      })
    )

    it.effect("is sorted, whatever the order of registration", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        for (const name of ["b", "a_", "a", "Z", "aa"]) yield* host.register(readTool(name))
        yield* host.register(readTool("x", undefined, { namespace: "a" }))
        yield* initialize(wire)
        assert.deepStrictEqual(yield* listNames(wire), [
          "a__x",
          ...STABLE,
          "shop__Z",
          "shop__a",
          "shop__a_",
          "shop__aa",
          "shop__b"
        ])
      })
    )

    it.effect("is the same byte for byte after tools came and went", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        yield* host.register(readTool("m"))
        yield* initialize(wire)
        const before = JSON.stringify((yield* wire.request("tools/list")).result)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* host.register(readTool("a"))
            yield* host.register(readTool("z"))
            assert.notStrictEqual(JSON.stringify((yield* wire.request("tools/list")).result), before)
          })
        )
        assert.strictEqual(JSON.stringify((yield* wire.request("tools/list")).result), before)
      })
    )

    // A batch is one change: a client that reads the list again does so once.
    const comesAndGoes = Effect.fnUntraced(function* (
      { host, wire }: Effect.Success<ReturnType<typeof start>>,
      params: object
    ) {
      const scope = yield* Scope.make()
      yield* Effect.forEach(["one", "two", "three"], (name) => host.register(readTool(name)), { discard: true }).pipe(
        Scope.provide(scope)
      )
      assert.strictEqual((yield* Queue.take(wire.incoming)).method, "notifications/tools/list_changed")
      assert.deepStrictEqual(yield* listNames(wire, params), [...STABLE, "shop__one", "shop__three", "shop__two"])

      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Queue.take(wire.incoming)).method, "notifications/tools/list_changed")
      assert.deepStrictEqual(yield* listNames(wire, params), STABLE)
      assert.strictEqual(yield* Queue.size(wire.incoming), 0)
    })

    it.effect("loses a tool with its scope, and tells a client with a session", () =>
      Effect.gen(function* () {
        const started = yield* start()
        const { result } = yield* initialize(started.wire)
        assert.deepStrictEqual(result.capabilities.tools, { listChanged: true })
        yield* comesAndGoes(started, {})
      })
    )

    it.effect("loses a tool with its scope, and tells a subscriber of revision 2026-07-28", () =>
      Effect.gen(function* () {
        const started = yield* start()
        const { wire } = started
        yield* Effect.forkChild(
          wire.request("subscriptions/listen", { notifications: { toolsListChanged: true }, ...modernMeta() })
        )
        const acknowledged = yield* Queue.take(wire.incoming)
        assert.strictEqual(acknowledged.method, "notifications/subscriptions/acknowledged")
        yield* comesAndGoes(started, modernMeta())
      })
    )

    it.effect("refuses a name that is taken, by a tool or by the host itself", () =>
      Effect.gen(function* () {
        const { host } = yield* start()
        yield* host.register(readTool("get"))
        const twice = yield* Effect.flip(host.register(readTool("get")))
        assert.strictEqual(twice.message, 'tool "shop__get" is already registered')
        for (const name of STABLE) {
          const own = yield* Effect.flip(host.register({ ...readTool("x"), publicName: PublicName.make(name) }))
          assert.strictEqual(own.message, `tool "${name}" is already registered`)
        }
      })
    )

    it.effect("refuses a tool whose schema MCP cannot carry", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        const error = yield* Effect.flip(
          host.register(readTool("get", undefined, { parametersSchema: { type: "object", required: "id" } }))
        )
        assert.match(error.message, /^tool "shop__get": /)
        assert.match(error.message, /required/)
        const $defs = { a: { $id: "http://x/one" }, b: { $id: "http://x/one" } }
        const unusable = yield* Effect.flip(
          host.register(readTool("get", undefined, { parametersSchema: { type: "object", $defs } }))
        )
        assert.match(unusable.message, /^tool "shop__get": schema cannot be used: /)
        yield* initialize(wire)
        assert.deepStrictEqual(yield* listNames(wire), STABLE)
      })
    )
  })

  describe("calling", () => {
    it.effect("gives any value as text and only an object of a declared shape as it is", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        yield* host.register(readTool("object", () => Effect.succeed({ n: 1 }), { outputSchema: { type: "object" } }))
        yield* host.register(readTool("undeclared", () => Effect.succeed({ n: 1 })))
        yield* host.register(readTool("text", () => Effect.succeed("a\nb"), { outputSchema: { type: "string" } }))
        yield* host.register(readTool("nothing", () => Effect.succeed(undefined)))
        yield* initialize(wire)

        const pretty = [{ type: "text", text: '{\n  "n": 1\n}' }]
        assert.deepStrictEqual(yield* call(wire, "shop__object"), { content: pretty, structuredContent: { n: 1 } })
        assert.deepStrictEqual(yield* call(wire, "shop__undeclared"), { content: pretty })
        assert.deepStrictEqual(yield* call(wire, "shop__text"), { content: [{ type: "text", text: '"a\\nb"' }] })
        assert.deepStrictEqual(yield* call(wire, "shop__nothing"), { content: [{ type: "text", text: "null" }] })
      })
    )

    it.effect("hands the arguments on and gives an application's error as a result", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        const seen: Array<unknown> = []
        const reason = new ApplicationError({ code: "internal", detail: "out of milk" })
        yield* host.register(
          readTool("get", (args) => {
            seen.push(args)
            return Effect.fail(new CallError({ reason }))
          })
        )
        yield* initialize(wire)
        assert.deepStrictEqual(
          yield* call(wire, "shop__get", { deep: { list: [1, null] } }),
          errorText("frontend-tools call failed (internal): out of milk")
        )
        assert.deepStrictEqual(seen, [{ deep: { list: [1, null] } }])
      })
    )

    it.effect("says which path of the arguments or of the result does not fit", () =>
      Effect.gen(function* () {
        const { host, wire } = yield* start()
        const schema = {
          type: "object",
          properties: { item: { type: "object", properties: { n: { type: "integer" } } } }
        }
        const returned: Array<unknown> = []
        yield* host.register(
          readTool("get", (args) => Effect.sync(() => returned.push(args)).pipe(Effect.as({ item: { n: "x" } })), {
            parametersSchema: schema,
            outputSchema: schema
          })
        )
        yield* initialize(wire)

        const badArguments = yield* call(wire, "shop__get", { item: { n: 1.5 } })
        assert.isTrue(badArguments.isError)
        assert.match(
          badArguments.content[0].text,
          /^Error: invalid arguments for tool "shop__get": arguments\.item\.n: /
        )
        assert.deepStrictEqual(returned, [])

        const badResult = yield* call(wire, "shop__get", {})
        assert.isTrue(badResult.isError)
        assert.match(badResult.content[0].text, /^Error: tool "shop__get" returned invalid output: result\.item\.n: /)
        assert.notProperty(badResult, "structuredContent")
      })
    )

    it.effect("survives a tool that breaks, without telling the model how", () =>
      Effect.gen(function* () {
        const { host, logged, wire } = yield* start()
        yield* host.register(readTool("get", () => Effect.die(new Error("secret"))))
        yield* initialize(wire)
        assert.deepStrictEqual(yield* call(wire, "shop__get"), errorText('tool "shop__get" failed unexpectedly'))
        assert.isTrue(logged.some((line) => line.includes('tool "shop__get" failed unexpectedly')))
      })
    )

    it.effect("answers an unknown tool with a protocol error", () =>
      Effect.gen(function* () {
        const { wire } = yield* start()
        yield* initialize(wire)
        const { error } = yield* wire.request("tools/call", { name: "shop__gone", arguments: {} })
        assert.deepStrictEqual(error, { code: -32602, message: "Tool 'shop__gone' not found" })
      })
    )

    for (const [revision, meta] of [
      ["of a session", {}],
      ["of revision 2026-07-28", modernMeta()]
    ] as const) {
      it.effect(`interrupts the call ${revision} that the client cancels, and no other`, () =>
        Effect.gen(function* () {
          const { host, wire } = yield* start()
          const events: Array<string> = []
          const slow = (name: string) =>
            readTool(name, () =>
              Effect.sync(() => events.push(`${name} started`)).pipe(
                Effect.andThen(Effect.never),
                Effect.onInterrupt(() => Effect.sync(() => events.push(`${name} interrupted`)))
              )
            )
          yield* host.register(slow("one"))
          yield* host.register(slow("two"))
          yield* host.register(readTool("quick", () => Effect.succeed(1)))
          yield* initialize(wire)

          const one = yield* Effect.forkChild(call(wire, "shop__one", {}, meta))
          const two = yield* Effect.forkChild(call(wire, "shop__two", {}, meta))
          // Slow calls cost only themselves.
          yield* call(wire, "shop__quick", {}, meta)
          assert.deepStrictEqual(events, ["one started", "two started"])

          yield* Fiber.interrupt(one)
          yield* call(wire, "shop__quick", {}, meta)
          assert.deepStrictEqual(events, ["one started", "two started", "one interrupted"])
          assert.deepStrictEqual(wire.strays, [])
          assert.isUndefined(two.pollUnsafe())
        })
      )
    }
  })

  describe("stable tools", () => {
    const setUp = Effect.gen(function* () {
      const started = yield* start()
      const written: Array<unknown> = []
      yield* started.host.register(
        readTool("get", (args) => Effect.succeed({ args }), { outputSchema: { type: "object" } })
      )
      yield* started.host.register(writeTool("put", (args) => Effect.sync(() => written.push(args))))
      yield* started.host.register(readTool("other", undefined, { namespace: "blog" }))
      return { ...started, written }
    })

    it.effect("list what there is now", () =>
      Effect.gen(function* () {
        const { wire } = yield* setUp
        yield* initialize(wire)
        const all = yield* call(wire, "frontend_tools_list_tools")
        assert.deepStrictEqual(
          all.structuredContent.tools.map((tool: { name: string; access: string }) => [tool.name, tool.access]),
          [
            ["blog__other", "read"],
            ["shop__get", "read"],
            ["shop__put", "write"]
          ]
        )
        assert.deepStrictEqual(JSON.parse(all.content[0].text), all.structuredContent)
        const some = yield* call(wire, "frontend_tools_list_tools", { namespace: "blog" })
        assert.strictEqual(some.structuredContent.tools.length, 1)
        assert.isTrue((yield* call(wire, "frontend_tools_list_tools", { namespace: 1 })).isError)
      })
    )

    it.effect("call a tool as if it were called by its name", () =>
      Effect.gen(function* () {
        const { wire } = yield* setUp
        yield* initialize(wire)
        const inner = { name: "shop__get", arguments: { a: 1 } }
        assert.deepStrictEqual(
          yield* call(wire, "frontend_tools_call_tool", inner),
          yield* call(wire, "shop__get", { a: 1 })
        )
        assert.deepStrictEqual(
          yield* call(wire, "frontend_tools_call_tool", { name: "shop__nope" }),
          errorText('unknown tool "shop__nope"; frontend_tools_list_tools shows the ones there are')
        )
        const wrong = yield* call(wire, "frontend_tools_call_tool", { arguments: {} })
        assert.match(wrong.content[0].text, /^Error: invalid arguments for tool "frontend_tools_call_tool": /)
      })
    )

    it.effect("ask for a write as the tool itself does", () =>
      Effect.gen(function* () {
        const { wire, written } = yield* setUp
        yield* initialize(wire, { capabilities: canAsk })
        const calling = yield* Effect.forkChild(
          call(wire, "frontend_tools_call_tool", { name: "shop__put", arguments: { a: 1 } })
        )
        const question = yield* Queue.take(wire.incoming)
        assert.strictEqual(question.method, "elicitation/create")
        assert.include(question.params.message, "Tool: put (shop__put)")
        assert.deepStrictEqual(written, [])
        yield* wire.respond(question.id, { action: "accept", content: {} })
        yield* Fiber.join(calling)
        assert.deepStrictEqual(written, [{ a: 1 }])
      })
    )

    it.effect("refuse a write to a client that cannot ask", () =>
      Effect.gen(function* () {
        const { wire, written } = yield* setUp
        yield* initialize(wire)
        const result = yield* call(wire, "frontend_tools_call_tool", { name: "shop__put", arguments: { a: 1 } })
        assert.isTrue(result.isError)
        assert.include(result.content[0].text, "does not support elicitation")
        assert.deepStrictEqual(written, [])
      })
    )
  })

  describe("its input", () => {
    it.effect("loses nothing but the noise in it", () =>
      Effect.gen(function* () {
        const { logged, wire } = yield* start()
        const ping = (id: number) => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })
        const first = yield* Effect.forkChild(wire.request("ping"))
        yield* Effect.yieldNow
        yield* wire.line(["{ garbage", "null", '"text"', "", "\u2028", ping(99)].join("\n"))
        const second = yield* wire.request("ping")
        assert.deepStrictEqual(second.result, {})
        assert.deepStrictEqual((yield* Fiber.join(first)).result, {})
        assert.deepStrictEqual(
          wire.strays.map(({ id }) => id),
          [99]
        )
        assert.strictEqual(logged.filter((line) => line.includes("no JSON-RPC message")).length, 3)
      })
    )

    it.effect("closes the host at once when nothing is going on", () =>
      Effect.gen(function* () {
        const { end, mcp, wire } = yield* start()
        yield* initialize(wire)
        const closed = yield* Effect.forkChild(mcp.closed, { startImmediately: true })
        yield* wire.request("ping")
        assert.isUndefined(closed.pollUnsafe())
        yield* end
        yield* Fiber.join(closed)
      })
    )

    it.effect("leaves calls and subscriptions one second", () =>
      Effect.gen(function* () {
        const { end, host, mcp, wire } = yield* start()
        yield* host.register(readTool("slow", () => Effect.never))
        yield* initialize(wire)
        yield* Effect.forkChild(call(wire, "shop__slow"))
        yield* wire.request("ping")
        const closed = yield* Effect.forkChild(mcp.closed, { startImmediately: true })
        yield* end
        yield* TestClock.adjust("999 millis")
        assert.isUndefined(closed.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(closed)
      })
    )
  })

  it.effect("keeps a key called __proto__ out of everything but the arguments", () =>
    Effect.gen(function* () {
      const { host, wire } = yield* start()
      const seen: Array<string> = []
      yield* host.register(readTool("get", (args) => Effect.sync(() => seen.push(JSON.stringify(args)))))
      yield* initialize(wire)
      yield* wire.line(
        '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"shop__get","arguments":{"a":{"__proto__":{"b":1}}}}}'
      )
      yield* wire.request("ping")
      assert.deepStrictEqual(seen, ['{"a":{"__proto__":{"b":1}}}'])
    })
  )

  it.effect("runs a thousand calls at once", () =>
    Effect.gen(function* () {
      const { host, wire } = yield* start()
      const numbers = Array.from({ length: 1000 }, (_, n) => n)
      const everybodyRuns = yield* Latch.make()
      let running = 0
      yield* host.register(
        readTool("get", (args) =>
          Effect.suspend(() => (++running === numbers.length ? everybodyRuns.open : Effect.void)).pipe(
            Effect.andThen(everybodyRuns.await),
            Effect.as(args)
          )
        )
      )
      yield* initialize(wire)
      const results = yield* Effect.forEach(numbers, (n) => call(wire, "shop__get", { n }), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        results.map((result) => JSON.parse(result.content[0].text).n),
        numbers
      )
    })
  )

  it.effect("interrupts what runs when its scope closes, and not the fiber that built it", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { host, wire } = yield* start().pipe(Scope.provide(scope))
      const ended: Array<string> = []
      yield* host
        .register(readTool("slow", () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended.push("slow")))))
        .pipe(Scope.provide(scope))
      yield* initialize(wire)
      yield* Effect.forkChild(call(wire, "shop__slow"))
      yield* wire.request("ping")
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(ended, ["slow"])
      // An interruption of this fiber would show at the next suspension.
      yield* Effect.yieldNow
    })
  )
})
