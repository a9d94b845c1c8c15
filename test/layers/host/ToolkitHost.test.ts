import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Schema, Scope, Stream } from "effect"
import { LanguageModel, Prompt, Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import { ApplicationError, type ToolHost } from "../../../src/index.ts"
import { ScriptedModel, TestApplication, TestBridge, TestTool } from "../../../src/testing.ts"
import {
  Approval,
  type ApprovalDecision,
  type ApprovalRequest,
  MirroredToolkit,
  ToolkitHost
} from "../../../src/toolkit.ts"

const bridge = TestBridge.layer({ callTimeoutMs: 10_000 })

/** A bridge on the toolkit, and a model that calls the tools it is told to and then says "done". */
const world = <E, R>(
  host: Layer.Layer<MirroredToolkit | ToolHost, E, R>,
  calls: ReadonlyArray<{ readonly tool: string; readonly arguments?: unknown; readonly id?: string }> = []
) =>
  Layer.mergeAll(
    bridge.pipe(Layer.provideMerge(host)),
    ScriptedModel.layerScript({ rules: [{ answers: [{ calls }, { text: "done" }] }] })
  )

const cart = TestTool.read({
  name: "cart",
  parameters: Schema.Struct({ shop: Schema.String }),
  run: ({ shop }) => Effect.succeed({ shop, items: ["tea"] })
})

const written: Array<unknown> = []
const order = TestTool.write({
  name: "order",
  parameters: Schema.Struct({ item: Schema.String }),
  run: ({ item }) =>
    Effect.sync(() => {
      written.push(item)
      return { ordered: item }
    })
})

const hang = TestTool.read({ name: "hang", run: () => Effect.never })

const generate = Effect.gen(function* () {
  const toolkit = yield* MirroredToolkit
  return yield* LanguageModel.generateText({ prompt: "go", toolkit: toolkit.tools() })
})

const resultsOf = (response: {
  readonly toolResults: ReadonlyArray<{ readonly isFailure: boolean; readonly result: unknown }>
}) => response.toolResults.map(({ isFailure, result }) => ({ isFailure, result }))

const namesOf = (tools: { readonly tools: object }) => Object.keys(tools.tools)

describe("ToolkitHost", () => {
  it.effect("lets a model call the tools of applications", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("shop", { tools: [cart] })
      assert.deepStrictEqual(resultsOf(yield* generate), [
        { isFailure: false, result: { shop: "corner", items: ["tea"] } }
      ])
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "shop__cart", arguments: { shop: "corner" } }])))
  )

  it.effect("shows the application's own JSON Schema, in stable order, with hints", () =>
    Effect.gen(function* () {
      const toolkit = yield* MirroredToolkit
      yield* TestApplication.connect("zoo", { tools: [hang] })
      yield* TestApplication.connect("shop", { tools: [order, cart] })
      const { tools } = yield* toolkit.tools()
      assert.deepStrictEqual(Object.keys(tools), ["shop__cart", "shop__order", "zoo__hang"])
      const shown = tools.shop__cart
      assert.isDefined(shown)
      assert.deepStrictEqual(Tool.getJsonSchema(shown), cart.remote.parametersSchema)
      assert.strictEqual(Tool.getDescription(shown), "The tool cart.")
      assert.deepStrictEqual(
        Object.values(tools).map(({ annotations }) => [
          annotations.mapUnsafe.get(Tool.Title.key),
          annotations.mapUnsafe.get(Tool.Readonly.key),
          annotations.mapUnsafe.get(Tool.Destructive.key)
        ]),
        [
          ["shop.cart", true, false],
          ["shop.order", false, true],
          ["zoo.hang", true, false]
        ]
      )
    }).pipe(Effect.provide(world(ToolkitHost.layer)))
  )

  it.effect("follows the applications live, and stays the same object in between", () =>
    Effect.gen(function* () {
      const toolkit = yield* MirroredToolkit
      const tools = toolkit.tools()
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      const before = yield* tools
      assert.strictEqual(yield* tools, before)
      yield* shop.register(hang)
      assert.deepStrictEqual(namesOf(yield* tools), ["shop__cart", "shop__hang"])
      assert.deepStrictEqual(namesOf(before), ["shop__cart"])
      // What did not change is the same object, for whoever caches by it.
      assert.strictEqual((yield* tools).tools.shop__cart, before.tools.shop__cart)
      yield* shop.drop
      assert.deepStrictEqual(namesOf(yield* tools), [])
    }).pipe(Effect.provide(world(ToolkitHost.layer)))
  )

  it.effect("signals changes", () =>
    Effect.gen(function* () {
      const toolkit = yield* MirroredToolkit
      const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(toolkit.changes, 2)), {
        startImmediately: true
      })
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      yield* Effect.yieldNow
      yield* shop.drop
      assert.strictEqual((yield* Fiber.join(seen)).length, 2)
    }).pipe(Effect.provide(world(ToolkitHost.layer)))
  )

  it.effect("keeps a pinned list, on which a tool that has gone says so", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      const pinned = yield* MirroredToolkit.use((toolkit) => toolkit.tools())
      yield* shop.drop
      const response = yield* LanguageModel.generateText({ prompt: "go", toolkit: pinned })
      assert.deepStrictEqual(resultsOf(response), [
        {
          isFailure: true,
          result: {
            reason: "Gone",
            message: 'tool "shop__cart" is not available now: its application left or took it back'
          }
        }
      ])
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "shop__cart", arguments: { shop: "x" } }])))
  )

  it.effect("answers every way of failing with a result that the model can react to", () =>
    Effect.gen(function* () {
      const toolkit = yield* MirroredToolkit
      const shop = yield* TestApplication.connect("shop", {
        tools: [
          cart,
          order,
          hang,
          TestTool.read({
            name: "deny",
            run: () => Effect.fail(new ApplicationError({ code: "denied", detail: "closed" }))
          }),
          TestTool.read({
            name: "lie",
            outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
            run: () => Effect.succeed({ n: "one" })
          })
        ]
      })
      const reason = (name: string, args: unknown = {}) =>
        Effect.map(toolkit.call(name, args), (outcome) =>
          outcome._tag === "Failure" ? outcome.failure.reason : outcome.value
        )
      const circular: Record<string, unknown> = {}
      circular.self = circular
      const timingOut = yield* Effect.forkChild(reason("shop__hang"), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      const dropping = yield* Effect.forkChild(reason("shop__hang"), { startImmediately: true })
      const seen = [
        yield* reason("shop__cart", { shop: 1 }),
        yield* reason("shop__order", { item: "tea" }),
        yield* reason("shop__deny"),
        yield* reason("shop__lie"),
        yield* reason("nobody__home"),
        yield* reason("shop__hang", circular)
      ]
      yield* shop.drop
      seen.push(yield* Fiber.join(timingOut), yield* Fiber.join(dropping))
      assert.deepStrictEqual(seen, [
        "InvalidArguments",
        "NotAllowed",
        "ApplicationFailed",
        "InvalidResult",
        "Gone",
        "Unavailable",
        "TimedOut",
        "Disconnected"
      ])
    }).pipe(Effect.provide(world(ToolkitHost.layer)))
  )

  it.effect("does not fail a generation because arguments do not fit", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("shop", { tools: [cart] })
      const [result] = resultsOf(yield* generate)
      assert.isTrue(result?.isFailure)
      assert.include(JSON.stringify(result?.result), "arguments.shop")
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "shop__cart", arguments: { shop: 1 } }])))
  )

  it.effect("aborts the calls of a generation that is interrupted", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [hang] })
      yield* shop.hold
      const generation = yield* Effect.forkChild(generate, { startImmediately: true })
      while (shop.calls().length === 0) yield* Effect.yieldNow
      yield* Fiber.interrupt(generation)
      // Nobody waits for it any more: the late answer goes nowhere, and the session goes on.
      yield* shop.behave
      assert.deepStrictEqual(shop.errors(), [])
      const exit = yield* Fiber.await(generation)
      assert.isTrue(Exit.hasInterrupts(exit))
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "shop__hang" }])))
  )

  it.effect("offers what is selected, and calls nothing else", () =>
    Effect.gen(function* () {
      const toolkit = yield* MirroredToolkit
      yield* TestApplication.connect("shop", { tools: [cart, order] })
      yield* TestApplication.connect("zoo", { tools: [cart] })
      assert.deepStrictEqual(namesOf(yield* toolkit.tools({ namespaces: ["shop"] })), ["shop__cart", "shop__order"])
      const reads = { where: ({ access }: { readonly access: string }) => access === "read" }
      assert.deepStrictEqual(namesOf(yield* toolkit.tools(reads)), ["shop__cart", "zoo__cart"])
      const both = { namespaces: ["shop"], ...reads }
      assert.deepStrictEqual(namesOf(yield* toolkit.tools(both)), ["shop__cart"])
      const outcome = yield* toolkit.call("zoo__cart", { shop: "x" }, both)
      assert.deepInclude(outcome, { _tag: "Failure" })
      assert.deepInclude(yield* toolkit.call("shop__cart", { shop: "x" }, both), { _tag: "Success" })
    }).pipe(Effect.provide(world(ToolkitHost.layer)))
  )

  it.effect("asks the selection again when a pinned tool is another one by now", () =>
    Effect.gen(function* () {
      const toolkit = yield* MirroredToolkit
      const shop = yield* TestApplication.connect("shop", { tools: [cart] })
      const pinned = yield* toolkit.tools({ where: ({ access }) => access === "read" })
      yield* shop.unregister("cart")
      yield* shop.register(TestTool.write({ name: "cart", run: () => Effect.succeed("written") }))
      const response = yield* LanguageModel.generateText({ prompt: "go", toolkit: pinned })
      assert.include(JSON.stringify(resultsOf(response)), '"reason":"Gone"')
      assert.deepStrictEqual(shop.calls(), [])
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "shop__cart", arguments: { shop: "x" } }])))
  )

  it.effect("stands beside the program's own tools, which keep their names", () =>
    Effect.gen(function* () {
      const Own = Toolkit.make(
        Tool.make("now", { success: Schema.String }),
        Tool.make("shop__cart", { success: Schema.String })
      )
      const own = yield* Own.pipe(
        Effect.provide(Own.toLayer({ now: () => Effect.succeed("noon"), shop__cart: () => Effect.succeed("mine") }))
      )
      yield* TestApplication.connect("shop", { tools: [cart, hang] })
      const toolkit = yield* MirroredToolkit.use(({ toolsWith }) => toolsWith(own))
      assert.deepStrictEqual(namesOf(toolkit), ["now", "shop__cart", "shop__hang"])
      const response = yield* LanguageModel.generateText({ prompt: "go", toolkit })
      assert.deepStrictEqual(
        resultsOf(response).map(({ result }) => result),
        ["noon", "mine"]
      )
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "now" }, { tool: "shop__cart" }])))
  )

  it.effect("refuses a tool whose schema cannot be used, and goes on", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop")
      const bad = TestTool.read({
        name: "bad",
        parametersSchema: { type: "object", properties: { a: { $id: "twice" }, b: { $id: "twice" } } },
        run: () => Effect.void
      })
      assert.strictEqual((yield* Effect.flip(shop.register(bad))).code, "invalid_tool")
      assert.deepStrictEqual(yield* shop.register(cart), ["shop__cart"])
    }).pipe(Effect.provide(world(ToolkitHost.layer)))
  )
})

describe("ToolkitHost.layer", () => {
  it.effect("refuses writes and says why", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      const [result] = resultsOf(yield* generate)
      assert.include(JSON.stringify(result), "needs a person's approval, and this program has no way to ask")
      assert.deepStrictEqual(shop.calls(), [])
    }).pipe(Effect.provide(world(ToolkitHost.layer, [{ tool: "shop__order", arguments: { item: "tea" } }])))
  )
})

describe("ToolkitHost.layerApproval", () => {
  const approving = (decide: (request: ApprovalRequest) => Effect.Effect<ApprovalDecision>) =>
    world(ToolkitHost.layerApproval.pipe(Layer.provide(Layer.succeed(Approval, { request: decide }))), [
      { tool: "shop__order", arguments: { item: "tea" }, id: "call-1" }
    ])

  const asked: Array<ApprovalRequest> = []

  it.effect("runs a write after a yes to that very call", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      assert.deepStrictEqual(resultsOf(yield* generate), [{ isFailure: false, result: { ordered: "tea" } }])
      assert.strictEqual(asked.length, 1)
      const { args, label, namespace, publicName, toolCallId } = asked[0] ?? assert.fail("nobody was asked")
      assert.deepStrictEqual(
        [String(publicName), label, namespace, toolCallId, args],
        ["shop__order", "shop.order", "shop", "call-1", { item: "tea" }]
      )
      for (const part of ["Application: shop", "Tool: order (shop__order)", '"item": "tea"']) {
        assert.include(asked[0]?.question, part)
      }
      yield* generate
      assert.strictEqual(asked.length, 2)
      assert.strictEqual(shop.calls().length, 2)
    }).pipe(
      Effect.provide(
        approving((request) =>
          Effect.sync(() => {
            asked.push(request)
            return Approval.allowedOnce
          })
        )
      )
    )
  )

  for (const [title, decide, text] of [
    [
      "a no",
      () => Effect.succeed(Approval.refused("too expensive")),
      'the user rejected tool \\"shop__order\\": too expensive'
    ],
    [
      "a defect",
      () => Effect.die(new Error("no screen")),
      "requires approval, and asking for it failed; nothing was run"
    ]
  ] as const) {
    it.effect(`runs nothing after ${title}`, () =>
      Effect.gen(function* () {
        const shop = yield* TestApplication.connect("shop", { tools: [order] })
        const [result] = resultsOf(yield* generate)
        assert.include(JSON.stringify(result), text)
        assert.deepStrictEqual(shop.calls(), [])
      }).pipe(Effect.provide(approving(decide)))
    )
  }

  it.effect("asks nobody about arguments that do not fit", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("shop", { tools: [order] })
      const outcome = yield* MirroredToolkit.use(({ call }) => call("shop__order", { item: 1 }))
      assert.include(JSON.stringify(outcome), "InvalidArguments")
    }).pipe(Effect.provide(approving(() => Effect.die(new Error("asked")))))
  )

  it.effect("withdraws the question when the tool goes or the caller gives up", () => {
    const withdrawn = Queue.unbounded<string>().pipe(Effect.runSync)
    return Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      const call = MirroredToolkit.use((toolkit) => toolkit.call("shop__order", { item: "tea" }))
      const going = yield* Effect.forkChild(call, { startImmediately: true })
      yield* shop.reload
      assert.include(JSON.stringify(yield* Fiber.join(going)), "taken back or replaced before it was approved")
      assert.strictEqual(yield* Queue.take(withdrawn), "tea")
      const abandoned = yield* Effect.forkChild(call, { startImmediately: true })
      yield* Fiber.interrupt(abandoned)
      assert.strictEqual(yield* Queue.take(withdrawn), "tea")
      assert.deepStrictEqual(shop.calls(), [])
    }).pipe(Effect.provide(approving(() => Effect.onInterrupt(Effect.never, () => Queue.offer(withdrawn, "tea")))))
  })

  it.effect("runs nothing when the tool went in the instant of the yes", () => {
    const yes = Deferred.makeUnsafe<void>()
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const shop = yield* TestApplication.connect("shop", { tools: [order] }).pipe(Scope.provide(scope))
      const calling = yield* Effect.forkChild(
        MirroredToolkit.use((toolkit) => toolkit.call("shop__order", { item: "tea" })),
        { startImmediately: true }
      )
      yield* Deferred.succeed(yes, undefined)
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(calling)
      assert.isBelow(shop.calls().length, 2)
    }).pipe(Effect.provide(approving(() => Effect.as(Deferred.await(yes), Approval.allowedOnce))))
  })
})

describe("ToolkitHost.layerNeedsApproval", () => {
  const conversation = world(ToolkitHost.layerNeedsApproval, [
    { tool: "shop__order", arguments: { item: "tea" }, id: "call-1" }
  ])

  const start = Effect.gen(function* () {
    const toolkit = yield* MirroredToolkit
    const tools = yield* toolkit.tools()
    const response = yield* LanguageModel.generateText({ prompt: "go", toolkit: tools })
    const asking = response.content.find((part) => part.type === "tool-approval-request")
    assert.isDefined(asking)
    const history = Prompt.concat(Prompt.make("go"), Prompt.fromResponseParts(response.content))
    const answer = (approved: boolean) =>
      Prompt.concat(
        history,
        Prompt.make([
          {
            role: "tool",
            content: [Prompt.makePart("tool-approval-response", { approvalId: asking.approvalId, approved })]
          }
        ])
      )
    const go = (approved: boolean) => LanguageModel.generateText({ prompt: answer(approved), toolkit: tools })
    return { response, go }
  })

  const said = (response: object) => JSON.stringify(response)

  it.effect("ends a generation with the question, and runs after the yes", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      const { go, response } = yield* start
      assert.deepStrictEqual(response.toolResults, [])
      assert.deepStrictEqual(shop.calls(), [])
      yield* go(true)
      assert.deepStrictEqual(
        shop.calls().map(({ args }) => args),
        [{ item: "tea" }]
      )
    }).pipe(Effect.provide(conversation))
  )

  it.effect("runs nothing after a no", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      const { go } = yield* start
      yield* go(false)
      assert.deepStrictEqual(shop.calls(), [])
    }).pipe(Effect.provide(conversation))
  )

  it.effect("lets one yes count once, and not for a tool that was replaced since", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      const { go } = yield* start
      yield* go(true)
      yield* go(true)
      assert.strictEqual(shop.calls().length, 1)
      const again = yield* start
      yield* shop.reload
      yield* again.go(true)
      assert.strictEqual(shop.calls().length, 1)
    }).pipe(Effect.provide(conversation))
  )

  it.effect("asks nobody about reads, or about arguments that do not fit", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("shop", { tools: [order, cart] })
      const response = yield* generate
      assert.deepStrictEqual(
        response.content.filter(({ type }) => type === "tool-approval-request"),
        []
      )
      assert.include(said(resultsOf(response)), "InvalidArguments")
      assert.include(said(resultsOf(response)), "corner")
    }).pipe(
      Effect.provide(
        world(ToolkitHost.layerNeedsApproval, [
          { tool: "shop__order", arguments: { item: 1 } },
          { tool: "shop__cart", arguments: { shop: "corner" } }
        ])
      )
    )
  )

  it.effect("runs no write that a program calls by itself", () =>
    Effect.gen(function* () {
      const shop = yield* TestApplication.connect("shop", { tools: [order] })
      const outcome = yield* MirroredToolkit.use(({ call }) => call("shop__order", { item: "tea" }))
      assert.include(said(outcome), "no approval holds for this call")
      assert.deepStrictEqual(shop.calls(), [])
    }).pipe(Effect.provide(conversation))
  )
})
