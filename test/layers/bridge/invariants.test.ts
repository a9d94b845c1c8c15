/**
 * A model of the bridge against the bridge: random interleavings of registering,
 * unregistering, leaving, coming back, calling, answering, aborting and waiting, with
 * the design's invariants 1 (a tool is on the host exactly while its session is
 * live), 2 (every call settles exactly once), 5 (a batch is all or nothing) and 6
 * (nothing is left behind) checked after every step.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { BridgeServer, CallDispatcher, type CallError, MemoryHost, MirrorRegistry } from "../../../src/index.ts"
import { type Application, connect, listed, memoryBridge, tool } from "../../support/memoryBridge.ts"

const MAX_TOOLS = 6
const NAMESPACES = ["demo", "shop"] as const

const Who = Schema.Literals(NAMESPACES)
const Raw = Schema.Literals(["a", "b", "c", "d", "bad name"])
const Nth = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))

const Step = Schema.Union([
  Schema.Struct({ do: Schema.Literal("join"), who: Who }),
  Schema.Struct({ do: Schema.Literal("leave"), who: Who }),
  Schema.Struct({ do: Schema.Literal("garbage"), who: Who }),
  Schema.Struct({ do: Schema.Literal("register"), who: Who, names: Schema.NonEmptyArray(Raw) }),
  Schema.Struct({ do: Schema.Literal("unregister"), who: Who, names: Schema.NonEmptyArray(Raw) }),
  Schema.Struct({ do: Schema.Literal("call"), who: Who, name: Raw }),
  Schema.Struct({ do: Schema.Literal("answer"), who: Who, nth: Nth, twice: Schema.Boolean }),
  Schema.Struct({ do: Schema.Literal("abort"), nth: Nth }),
  Schema.Struct({ do: Schema.Literal("wait") })
])
type Step = typeof Step.Type

interface Pending {
  readonly who: string
  readonly fiber: Fiber.Fiber<Exit.Exit<unknown, CallError>>
  /** What the model says about its end. */
  expected: string | undefined
}

/** Which public names a batch adds, or nothing when it is refused. */
const modelRegister = (model: ReadonlyMap<string, ReadonlySet<string>>, who: string, names: ReadonlyArray<string>) => {
  const own = model.get(who) ?? new Set()
  const total = Array.from(model.values()).reduce((sum, tools) => sum + tools.size, 0)
  const legal = names.every((name) => name !== "bad name" && !own.has(name)) && new Set(names).size === names.length
  return legal && total + names.length <= MAX_TOOLS ? names : []
}

const outcome = (exit: Exit.Exit<unknown, CallError>): string => {
  if (Exit.isSuccess(exit)) return "Success"
  const error = Exit.findErrorOption(exit)
  return error._tag === "Some" ? error.value.reason._tag : "CallAborted"
}

const run = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const host = yield* MemoryHost
  const server = yield* BridgeServer
  const dispatcher = yield* CallDispatcher
  const registry = yield* MirrorRegistry
  const live = new Map<string, Application>()
  const model = new Map<string, Set<string>>()
  const calls: Array<Pending> = []
  const callIds = new Map<Pending, string>()

  const open = () => calls.filter(({ expected }) => expected === undefined)
  const end = (who: string) => {
    live.delete(who)
    model.delete(who)
    for (const call of open()) if (call.who === who) call.expected = "ConnectionClosed"
  }

  for (const step of steps) {
    switch (step.do) {
      case "join": {
        if (live.has(step.who)) break
        live.set(step.who, yield* connect(step.who))
        model.set(step.who, new Set())
        break
      }
      case "leave": {
        live.get(step.who)?.close()
        end(step.who)
        break
      }
      case "garbage": {
        live.get(step.who)?.send("{")
        end(step.who)
        break
      }
      case "register": {
        const application = live.get(step.who)
        if (application === undefined) break
        const added = modelRegister(model, step.who, step.names)
        application.take()
        application.say({ type: "register", tools: step.names.map((name) => tool(name, { readOnly: true })) })
        const [answer] = application.frames()
        assert.strictEqual(answer?.type, added.length > 0 ? "registered" : "error")
        for (const name of added) model.get(step.who)?.add(name)
        break
      }
      case "unregister": {
        const application = live.get(step.who)
        if (application === undefined) break
        application.take()
        application.say({ type: "unregister", names: step.names })
        const removed = Array.from(new Set(step.names)).filter((name) => model.get(step.who)?.delete(name))
        assert.deepStrictEqual(application.frames(), [{ type: "unregistered", names: removed }])
        break
      }
      case "call": {
        if (model.get(step.who)?.has(step.name) !== true) break
        const application = live.get(step.who)
        application?.take()
        const fiber = yield* host
          .call(`${step.who}__${step.name}`, {})
          .pipe(Effect.exit, Effect.forkChild({ startImmediately: true }))
        const call: Pending = { who: step.who, fiber, expected: undefined }
        calls.push(call)
        callIds.set(call, String(application?.frames().at(-1)?.callId))
        break
      }
      case "answer": {
        const waiting = calls.filter(({ who }) => who === step.who)
        const call = waiting[step.nth % Math.max(1, waiting.length)]
        const application = live.get(step.who)
        if (call === undefined || application === undefined) break
        const result = { type: "callResult", callId: callIds.get(call), ok: true, result: null }
        application.say(result)
        if (step.twice) application.say(result)
        call.expected ??= "Success"
        break
      }
      case "abort": {
        const call = open()[step.nth % Math.max(1, open().length)]
        if (call === undefined) break
        call.expected = "CallAborted"
        yield* Fiber.interrupt(call.fiber)
        break
      }
      case "wait": {
        yield* TestClock.adjust("10 seconds")
        for (const call of open()) call.expected = "DeadlineExceeded"
        // Ten seconds never reach the heartbeat without an answer in between.
        for (const application of live.values()) application.say({ type: "pong" })
        break
      }
    }

    const expected = Array.from(model, ([who, tools]) => Array.from(tools, (name) => `${who}__${name}`))
      .flat()
      .sort()
    assert.deepStrictEqual(yield* listed, expected)
    assert.deepStrictEqual(
      (yield* registry.tools).map(({ publicName }) => String(publicName)),
      expected
    )
    assert.deepStrictEqual(
      (yield* server.sessions).map(({ namespace }) => String(namespace)).sort(),
      [...live.keys()].sort()
    )
    assert.strictEqual(yield* dispatcher.inFlight, open().length)
    for (const call of calls) {
      const ended = call.fiber.pollUnsafe()
      if (call.expected === undefined) {
        assert.isUndefined(ended)
      } else if (ended !== undefined && Exit.isSuccess(ended)) {
        assert.strictEqual(outcome(ended.value), call.expected)
      } else {
        assert.strictEqual(call.expected, "CallAborted")
        assert.isDefined(ended)
      }
    }
  }

  for (const application of live.values()) application.close()
  assert.deepStrictEqual(yield* listed, [])
  assert.strictEqual(yield* dispatcher.inFlight, 0)
})

describe("invariants", () => {
  it.effect.prop(
    "hold over every interleaving",
    [Schema.Array(Step).check(Schema.isMaxLength(40))],
    ([steps]) =>
      Effect.asVoid(run(steps)).pipe(Effect.provide(memoryBridge({ maxTools: MAX_TOOLS, callTimeoutMs: 10_000 }))),
    { timeout: 60_000, arbitrary: { runs: 300 } }
  )
})
