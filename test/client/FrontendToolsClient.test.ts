/** The Effect API, on a whole bridge in memory. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer, Result, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type ClientOptions, FrontendToolsClient } from "../../src/client/FrontendToolsClient.ts"
import * as Tool from "../../src/client/Tool.ts"
import { BridgeServer, MemoryHost, Namespace } from "../../src/index.ts"
import { connect as connectAs, listed, memoryBridge, registerReads } from "../support/memoryBridge.ts"
import { memorySockets, settle } from "../support/memorySocket.ts"

const Todo = Schema.Struct({
  title: Schema.String.check(Schema.isMinLength(1)),
  due: Schema.optionalKey(Schema.Struct({ day: Schema.Int }))
})

const read = (name: string, handler: () => Effect.Effect<unknown, unknown> = () => Effect.succeed(name)) =>
  Tool.make({ name, description: `reads ${name}`, parameters: Schema.Struct({}), readOnly: true, handler })

/** A connected client in a scope of its own. */
const connect = Effect.fnUntraced(function* (options: Partial<ClientOptions> = {}) {
  const sockets = yield* memorySockets
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  const client = yield* FrontendToolsClient.make({
    url: "ws://127.0.0.1:31870",
    key: "demo-key",
    socket: sockets.Socket,
    platform: {},
    ...options
  }).pipe(Scope.provide(scope))
  yield* settle
  return { ...sockets, client, scope }
})

const call = (name: string, args: unknown = {}) =>
  MemoryHost.use((host) => host.call(name, args, () => Effect.succeed(true)))

const start = (name: string, args?: unknown) =>
  call(name, args).pipe(Effect.exit, Effect.forkChild({ startImmediately: true }), Effect.tap(settle))

const messageOf = (name: string, args?: unknown) =>
  Effect.map(Effect.flip(call(name, args)), ({ message }) => message.replace("frontend-tools call failed ", ""))

describe("tools", () => {
  it.effect("have their arguments decoded, and answer with what the handler gives", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      const due = Schema.Struct({ on: Schema.Date })
      const { publicNames } = yield* client.register(
        Tool.make({
          name: "tomorrow",
          description: "The day after.",
          parameters: due,
          success: due,
          handler: ({ on }) => Effect.succeed({ on: new Date(on.getTime() + 86_400_000) })
        })
      )
      assert.deepStrictEqual(yield* publicNames, ["demo__tomorrow"])
      assert.deepStrictEqual(yield* call("demo__tomorrow", { on: "2030-01-01T00:00:00.000Z" }), {
        on: "2030-01-02T00:00:00.000Z"
      })
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("are listed with their schema, their class and their description", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      yield* client.register(
        Tool.make({ name: "add", description: "Adds one.", parameters: Todo, handler: () => Effect.void }),
        read("list")
      )
      yield* settle
      const tools = yield* MemoryHost.use((host) => host.tools)
      const [add, list] = tools.filter(({ namespace }) => namespace === "demo")
      assert.deepInclude(add, {
        access: "write",
        description: "Adds one.",
        parametersSchema: {
          type: "object",
          properties: {
            title: { type: "string", description: "(minLength 1)" },
            due: {
              type: "object",
              properties: { day: { type: "integer" } },
              required: ["day"]
            }
          },
          required: ["title"]
        }
      })
      assert.deepInclude(list, { access: "read" })
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("refuse arguments that do not decode, with the path, and are not called", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      let called = 0
      // What the schema on the wire cannot say is what gets this far.
      const parameters = Schema.Struct({
        list: Schema.Array(Schema.Struct({ n: Schema.Int.check(Schema.isGreaterThan(0)) }))
      })
      yield* client.register(
        Tool.make({
          name: "add",
          description: "",
          parameters,
          readOnly: true,
          handler: () => Effect.sync(() => called++)
        })
      )
      yield* settle
      const message = yield* messageOf("demo__add", { list: [{ n: 1 }, { n: 0 }] })
      assert.match(message, /^\(invalid_args\): arguments\.list\.1\.n: /)
      assert.match(yield* messageOf("demo__add", "text"), /^\(invalid_args\): arguments: /)
      assert.strictEqual(called, 0)
      yield* call("demo__add", { list: [{ n: 1 }] })
      assert.strictEqual(called, 1)
      yield* client.register(read("list"))
      yield* settle
      assert.strictEqual(yield* call("demo__list", null), "list")
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("fail with a code of their own choice, or with what went wrong", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      class OutOfStock extends Schema.TaggedError<OutOfStock>()("OutOfStock", { item: Schema.String }) {
        override get message() {
          return `no ${this.item} left`
        }
      }
      yield* client.register(
        read("denied", () => Effect.fail(Tool.ToolFailure.denied("not logged in"))),
        read("failed", () => Effect.fail(new OutOfStock({ item: "milk" }))),
        read("text", () => Effect.fail("just text")),
        read("died", () => Effect.die(undefined)),
        read("threw", () => {
          throw new TypeError("not a function")
        }),
        read("interrupted", () => Effect.interrupt),
        read("odd", () => Effect.succeed({ big: 1n })),
        Tool.make({
          name: "wrong",
          description: "",
          parameters: Schema.Struct({}),
          success: Schema.Struct({ n: Schema.Int }),
          readOnly: true,
          handler: () => Effect.succeed({ n: 0.5 })
        })
      )
      yield* settle
      assert.strictEqual(yield* messageOf("demo__denied"), "(denied): not logged in")
      assert.strictEqual(yield* messageOf("demo__failed"), "(internal): no milk left")
      assert.strictEqual(yield* messageOf("demo__text"), "(internal): just text")
      assert.strictEqual(yield* messageOf("demo__died"), "(internal): the tool threw undefined")
      assert.strictEqual(yield* messageOf("demo__threw"), "(internal): not a function")
      assert.strictEqual(yield* messageOf("demo__interrupted"), "(internal): the tool was interrupted")
      assert.strictEqual(yield* messageOf("demo__odd"), "(internal): the result is not JSON: result.big is a BigInt")
      assert.match(
        yield* messageOf("demo__wrong"),
        /^\(internal\): the result is not what the tool declares: result\.n: /
      )
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("use the services of the place that registers them, and a scope for each call", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      class Shelf extends Context.Service<Shelf, { readonly items: ReadonlyArray<string> }>()("Shelf") {}
      const events: Array<string> = []
      const list = Tool.make({
        name: "list",
        description: "",
        parameters: Schema.Struct({}),
        readOnly: true,
        handler: (_, { callId, name }) =>
          Effect.gen(function* () {
            yield* Effect.addFinalizer(() => Effect.sync(() => events.push("closed")))
            events.push(`${name} ${callId.length}`)
            return (yield* Shelf).items
          })
      })
      yield* client.register(list).pipe(Effect.provideService(Shelf, { items: ["milk"] }))
      yield* settle
      assert.deepStrictEqual(yield* call("demo__list"), ["milk"])
      assert.deepStrictEqual(events, ["list 36", "closed"])
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("registrations", () => {
  it.effect("live as long as their scope", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      const scope = yield* Scope.make()
      yield* client.register(read("a")).pipe(Scope.provide(scope))
      yield* client.register(read("b"))
      yield* settle
      assert.deepStrictEqual(yield* listed, ["demo__a", "demo__b"])
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.deepStrictEqual(yield* listed, ["demo__b"])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("replace one of the same name and scope, and respect one of another", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      const scope = yield* Scope.make()
      yield* client.register(read("a", () => Effect.succeed(1))).pipe(Scope.provide(scope))
      yield* client.register(read("a", () => Effect.succeed(2))).pipe(Scope.provide(scope))
      yield* settle
      assert.strictEqual(yield* call("demo__a"), 2)
      const refusal = yield* Effect.flip(client.register(read("b"), read("a")))
      assert.deepInclude(refusal, {
        _tag: "ToolsRefused",
        code: "invalid_tool",
        message: 'tool "a" is already registered by this client',
        names: ["b", "a"]
      })
      yield* Scope.close(scope, Exit.void)
      yield* client.register(read("a", () => Effect.succeed(3)))
      yield* settle
      assert.strictEqual(yield* call("demo__a"), 3)
      assert.deepStrictEqual(yield* listed, ["demo__a"])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("that the bridge refuses fail, are heard of, and do not come back", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connect()
      const refusals = yield* client.refusals.pipe(
        Stream.take(1),
        Stream.runCollect,
        Effect.forkChild({ startImmediately: true })
      )
      const good = yield* client.register(read("a"), read("b"))
      yield* settle
      const bad = yield* client.register(read("c"))
      const refusal = yield* Effect.flip(bad.publicNames)
      assert.deepInclude(refusal, { code: "too_many_tools", names: ["c"] })
      assert.deepStrictEqual(Array.from(yield* Fiber.join(refusals)), [refusal])
      assert.deepStrictEqual(yield* good.publicNames, ["demo__a", "demo__b"])
      latest().drop()
      yield* TestClock.adjust("2 seconds")
      yield* settle
      assert.deepStrictEqual(yield* listed, ["demo__a", "demo__b"])
      assert.deepStrictEqual(
        latest().sent.map(({ type }) => type),
        ["hello", "register"]
      )
    }).pipe(Effect.provide(memoryBridge({ maxTools: 2 })))
  )

  it.effect("that a later session refuses fail from then on", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connect()
      const { publicNames } = yield* client.register(read("a"), read("b"))
      assert.deepStrictEqual(yield* publicNames, ["demo__a", "demo__b"])
      latest().drop()
      yield* settle
      registerReads(yield* connectAs("other"), "c")
      yield* TestClock.adjust("2 seconds")
      yield* settle
      assert.deepStrictEqual(yield* listed, ["demo__a", "other__c"])
      assert.deepInclude(yield* Effect.flip(publicNames), { code: "too_many_tools", names: ["b"] })
    }).pipe(Effect.provide(memoryBridge({ maxTools: 2 })))
  )

  it.effect("wait for a bridge that is not there yet, and through a drop before its answer", () =>
    Effect.gen(function* () {
      const { client, latest, network } = yield* connect()
      network.up = false
      latest().drop()
      yield* settle
      const { publicNames } = yield* client.register(read("a"))
      const waiting = yield* Effect.forkChild(publicNames, { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      yield* settle
      assert.isUndefined(waiting.pollUnsafe())
      network.up = true
      yield* client.retryNow
      // The bridge has the request, and the connection is gone before its answer is read.
      yield* Effect.promise(() => Promise.resolve())
      latest().drop()
      yield* TestClock.adjust("1 minute")
      yield* settle
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["demo__a"])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("cut off in the middle of a request are answered by the next session", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connect()
      const cut = latest()
      // From here on nothing of the bridge's arrives.
      cut.onmessage = null
      const { publicNames } = yield* client.register(read("a"))
      const waiting = yield* Effect.forkChild(publicNames, { startImmediately: true })
      yield* settle
      assert.deepStrictEqual(
        cut.sent.map(({ type }) => type),
        ["hello", "register"]
      )
      cut.drop()
      yield* settle
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      yield* settle
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["demo__a"])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("nobody waits for a client that has ended", () =>
    Effect.gen(function* () {
      const { client, network, latest, scope } = yield* connect()
      network.up = false
      latest().drop()
      yield* settle
      const { publicNames } = yield* client.register(read("a"))
      const waiting = yield* publicNames.pipe(Effect.exit, Effect.forkChild({ startImmediately: true }))
      yield* Scope.close(scope, Exit.void)
      yield* settle
      const exit = yield* Fiber.join(waiting)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      const late = yield* client.register(read("b"))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(late.publicNames)))
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("come back in order after a restart, fifty of them", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      const names = Array.from({ length: 50 }, (_, i) => `t${String(99 - i)}`)
      for (const name of names) yield* client.register(read(name))
      yield* settle
      assert.lengthOf(yield* listed, 50)
      yield* BridgeServer.use((server) => server.disconnect(Namespace.make("demo"), "for a try"))
      yield* settle
      assert.lengthOf(yield* listed, 0)
      yield* TestClock.adjust("1500 millis")
      yield* settle
      assert.lengthOf(yield* listed, 50)
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("calls", () => {
  /** A tool that never ends, and what became of its handler. */
  const hanging = () => {
    const events: Array<string> = []
    const tool = read("hang", () =>
      Effect.never.pipe(
        Effect.onInterrupt(() => Effect.sync(() => events.push("interrupted"))),
        Effect.ensuring(Effect.sync(() => events.push("ended")))
      )
    )
    return { events, tool }
  }

  it.effect("are interrupted when their caller gives up, within the frame that says so", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connect()
      const { events, tool } = hanging()
      yield* client.register(tool)
      yield* settle
      const caller = yield* start("demo__hang")
      assert.strictEqual(yield* client.inFlight, 1)
      const sent = latest().sent.length
      yield* Fiber.interrupt(caller)
      yield* settle
      assert.deepStrictEqual(events, ["interrupted", "ended"])
      assert.strictEqual(yield* client.inFlight, 0)
      // Nobody waits for an answer.
      assert.strictEqual(latest().sent.length, sent)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("are interrupted at the deadline", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      const { events, tool } = hanging()
      yield* client.register(tool)
      yield* settle
      const caller = yield* start("demo__hang")
      yield* TestClock.adjust("999 millis")
      yield* settle
      assert.deepStrictEqual(events, [])
      yield* TestClock.adjust("1 millis")
      yield* settle
      assert.deepStrictEqual(events, ["interrupted", "ended"])
      assert.match(String(yield* Fiber.join(caller)), /timed out after 1000ms/)
    }).pipe(Effect.provide(memoryBridge({ callTimeoutMs: 1000 })))
  )

  it.effect("are interrupted when the connection drops, and when the scope of their tool closes", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connect()
      const { events, tool } = hanging()
      const scope = yield* Scope.make()
      yield* client.register(tool).pipe(Scope.provide(scope))
      yield* settle
      yield* start("demo__hang")
      latest().drop()
      yield* settle
      assert.deepStrictEqual(events.splice(0), ["interrupted", "ended"])
      yield* TestClock.adjust("2 seconds")
      yield* settle
      const caller = yield* start("demo__hang")
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.deepStrictEqual(events, ["interrupted", "ended"])
      assert.match(String(yield* Fiber.join(caller)), /the tool was interrupted/)
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("end with the client", () =>
    Effect.gen(function* () {
      const { client, scope } = yield* connect()
      const { events, tool } = hanging()
      yield* client.register(tool)
      yield* settle
      yield* start("demo__hang")
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.deepStrictEqual(events, ["interrupted", "ended"])
      assert.deepStrictEqual(yield* listed, [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("run at once: one that hangs holds nobody up", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      yield* client.register(hanging().tool, read("quick"))
      yield* settle
      yield* start("demo__hang")
      assert.strictEqual(yield* call("demo__quick"), "quick")
    }).pipe(Effect.provide(memoryBridge()))
  )
})

describe("the layer", () => {
  it.effect("gives the service, connected in its own time", () =>
    Effect.gen(function* () {
      const { Socket } = yield* memorySockets
      const layer = FrontendToolsClient.layer({ url: "ws://127.0.0.1:31870", key: "demo-key", socket: Socket })
      const namespace = yield* Effect.gen(function* () {
        const client = yield* FrontendToolsClient
        assert.deepInclude(yield* client.state, { status: "connecting" })
        return (yield* client.connected).namespace
      }).pipe(Effect.provide(layer))
      assert.strictEqual(namespace, "demo")
      yield* settle
      assert.deepStrictEqual(yield* (yield* BridgeServer).sessions, [])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("refuses a tool whose name the bridge would not take", () =>
    Effect.gen(function* () {
      const { client } = yield* connect()
      const refused = yield* Effect.result(client.register(read("a b")))
      assert.isTrue(Result.isFailure(refused))
    }).pipe(Effect.provide(Layer.fresh(memoryBridge())))
  )
})
