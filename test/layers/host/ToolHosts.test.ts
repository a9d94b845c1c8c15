import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import {
  jsonSchemaProfile,
  MemoryHost,
  type SchemaProfile,
  ToolHost,
  ToolHosts,
  ToolRefused
} from "../../../src/index.ts"
import { TestApplication, TestBridge, TestTool } from "../../../src/testing.ts"
import { MirroredToolkit, ToolkitHost } from "../../../src/toolkit.ts"
import { readTool } from "../../support/hostTools.ts"
import { initialize } from "../../support/McpWire.ts"
import { call, canAsk, listNames, start as startMcp } from "../../support/mcpHost.ts"

/** A host that takes no enums, like one with a subset of JSON Schema. */
const noEnums: SchemaProfile = {
  ...jsonSchemaProfile,
  violations: (schema) => (JSON.stringify(schema).includes('"enum"') ? ["properties.a: enum is unsupported"] : [])
}

const plain = TestTool.read({ name: "plain", run: () => Effect.succeed(1) })
const fancy = TestTool.read({
  name: "fancy",
  parametersSchema: { type: "object", properties: { a: { enum: [1, 2] } } },
  run: () => Effect.succeed(2)
})
const order = TestTool.write({ name: "order", run: () => Effect.succeed("ordered") })

/** A host that takes all but one name, and what it has. */
const picky = (refused: string, has: Set<string>) =>
  Layer.succeed(ToolHost, {
    profile: jsonSchemaProfile,
    register: ({ publicName }) =>
      publicName === refused
        ? Effect.fail(new ToolRefused({ publicName, message: `no ${publicName} here` }))
        : Effect.asVoid(
            Effect.acquireRelease(
              Effect.sync(() => has.add(publicName)),
              () => Effect.sync(() => has.delete(publicName))
            )
          )
  })

const onMemory = MemoryHost.use(({ tools }) => Effect.map(tools, (all) => all.map(({ rawName }) => String(rawName))))
const onToolkit = MirroredToolkit.use(({ list }) =>
  Effect.map(list, (all) => all.map(({ rawName }) => String(rawName)))
)

const two = (onRefusal?: "refuse" | "skip") =>
  ToolHosts.layer(
    ToolHosts.member("table", MemoryHost.layer({ profile: noEnums }), { onRefusal }),
    ToolHosts.member("agent", ToolkitHost.layer)
  )

describe("ToolHosts", () => {
  it.effect("puts a tool on every host, and takes it off every host", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [plain] })
      assert.deepStrictEqual([yield* onMemory, yield* onToolkit], [["plain"], ["plain"]])
      assert.strictEqual(yield* MemoryHost.use((host) => host.call("shop__plain", {})), 1)
      assert.deepInclude(yield* MirroredToolkit.use((toolkit) => toolkit.call("shop__plain", {})), { value: 1 })
      yield* shop.drop
      assert.deepStrictEqual([yield* onMemory, yield* onToolkit], [[], []])
    }).pipe(Effect.provide(TestBridge.layer().pipe(Layer.provideMerge(two()))))
  )

  it.effect("refuses the batch whose schema one host does not take, with that host's name", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop")
      const refused = yield* Effect.flip(shop.register(plain, fancy))
      assert.strictEqual(refused.code, "invalid_tool")
      assert.include(refused.message, 'host "table": properties.a: enum is unsupported')
      assert.deepStrictEqual([yield* onMemory, yield* onToolkit], [[], []])
    }).pipe(Effect.provide(TestBridge.layer().pipe(Layer.provideMerge(two()))))
  )

  it.effect("leaves a tool out of a host that skips, and says so in the log", () => {
    const logged: Array<string> = []
    return Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop")
      assert.deepStrictEqual(yield* shop.register(plain, fancy), ["shop__plain", "shop__fancy"])
      assert.deepStrictEqual([yield* onMemory, yield* onToolkit], [["plain"], ["fancy", "plain"]])
      assert.strictEqual(logged.length, 1)
      assert.include(logged[0], 'host "table": tool "shop__fancy": properties.a: enum is unsupported')
      yield* shop.drop
      assert.deepStrictEqual([yield* onMemory, yield* onToolkit], [[], []])
    }).pipe(
      Effect.provide(TestBridge.layer().pipe(Layer.provideMerge(two("skip")))),
      Effect.provide(Logger.layer([Logger.make(({ message }) => logged.push(String(message)))]))
    )
  })

  it.effect("refuses what every host would skip", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop")
      const refused = yield* Effect.flip(shop.register(fancy))
      assert.include(refused.message, 'host "a": properties.a: enum is unsupported; host "b": ')
    }).pipe(
      Effect.provide(
        TestBridge.layer().pipe(
          Layer.provideMerge(
            ToolHosts.layer(
              ToolHosts.member("a", MemoryHost.layer({ profile: noEnums }), { onRefusal: "skip" }),
              ToolHosts.member("b", MemoryHost.layer({ profile: noEnums }), { onRefusal: "skip" })
            )
          )
        )
      )
    )
  )

  for (const refusing of ["first", "last"]) {
    it.effect(`takes a batch back from every host when the ${refusing} refuses half-way`, () => {
      const has = { first: new Set<string>(), middle: new Set<string>(), last: new Set<string>() }
      const host = (name: "first" | "last") => picky(refusing === name ? "shop__fancy" : "", has[name])
      return Effect.gen(function* () {
        const shop = yield* TestApplication.connect("shop", { tools: [order] })
        const refused = yield* Effect.flip(shop.register(plain, fancy))
        assert.include(refused.message, `host "${refusing}": no shop__fancy here`)
        for (const held of Object.values(has)) assert.deepStrictEqual([...held], ["shop__order"])
      }).pipe(
        Effect.provide(
          TestBridge.layer().pipe(
            Layer.provideMerge(
              ToolHosts.layer(
                ToolHosts.member("last", host("last")),
                ToolHosts.member("middle", picky("", has.middle)),
                ToolHosts.member("first", host("first"))
              )
            )
          )
        )
      )
    })
  }

  it.effect("leaves nothing on a host when another refuses, though the caller's scope stays open", () => {
    const has = new Set<string>()
    return Effect.gen(function* () {
      const host = yield* ToolHost
      const scope = yield* Scope.make()
      yield* Effect.flip(host.register(readTool("plain")).pipe(Scope.provide(scope)))
      assert.deepStrictEqual([...has], [])
      yield* host.register(readTool("other")).pipe(Scope.provide(scope))
      assert.deepStrictEqual([...has], ["shop__other"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual([...has], [])
    }).pipe(
      Effect.provide(
        ToolHosts.layer(ToolHosts.member("a", picky("", has)), ToolHosts.member("b", picky("shop__plain", new Set())))
      )
    )
  })

  it.effect("does not start with two hosts of one name", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        Effect.scoped(
          Layer.build(
            ToolHosts.layer(ToolHosts.member("a", MemoryHost.layer()), ToolHosts.member("a", MemoryHost.layer()))
          )
        )
      )
      assert.isTrue(Exit.hasDies(exit))
    })
  )

  it.effect("serves an MCP client and a model of the program's own from one process", () =>
    Effect.gen(function* () {
      const { host, wire } = yield* startMcp()
      const group = yield* Layer.build(
        TestBridge.layer().pipe(
          Layer.provideMerge(
            ToolHosts.layer(
              ToolHosts.member("mcp", Layer.succeed(ToolHost, host)),
              ToolHosts.member("agent", ToolkitHost.layer)
            )
          )
        )
      )
      yield* initialize(wire, { capabilities: canAsk })
      const shop = yield* TestApplication.connect("shop", { tools: [plain, order] }).pipe(Effect.provide(group))
      assert.includeMembers(yield* listNames(wire), ["shop__plain", "shop__order"])
      assert.deepStrictEqual(yield* call(wire, "shop__plain"), { content: [{ type: "text", text: "1" }] })
      const toolkit = Context.get(group, MirroredToolkit)
      assert.deepInclude(yield* toolkit.call("shop__plain", {}), { value: 1 })
      // Each asks in its own way: this one has none.
      assert.include(JSON.stringify(yield* toolkit.call("shop__order", {})), "NotAllowed")
      yield* shop.drop
      assert.notIncludeMembers(yield* listNames(wire), ["shop__plain"])
      assert.deepStrictEqual(yield* toolkit.list, [])
    })
  )
})
