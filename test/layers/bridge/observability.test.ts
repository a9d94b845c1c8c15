import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Metric, Option, References, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { MemoryHost } from "../../../src/index.ts"
import { connect, hello, memoryBridge, registerReads } from "../../support/memoryBridge.ts"

const call = (name: string, args: unknown) => MemoryHost.use((host) => host.call(name, args))

/** A tracer that keeps every span. */
const recording = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, layer: Layer.succeed(Tracer.Tracer, tracer) }
}

/** One session that answers, fails, times out and is aborted. */
const scenario = Effect.gen(function* () {
  const demo = yield* connect("demo")
  registerReads(demo, "read")
  const answer = (frame: object) =>
    demo.listen((text) => demo.say({ type: "callResult", callId: JSON.parse(text).callId, ...frame }))
  answer({ ok: true, result: "secret-result" })
  yield* call("demo__read", { password: "secret-argument" })
  answer({ ok: false, error: { code: "denied", message: "no" } })
  yield* Effect.exit(call("demo__read", { password: "secret-argument" }))
  demo.listen(() => {})
  const late = yield* Effect.forkChild(Effect.exit(call("demo__read", {})), { startImmediately: true })
  const aborted = yield* Effect.forkChild(call("demo__read", {}), { startImmediately: true })
  yield* Fiber.interrupt(aborted)
  yield* TestClock.adjust("1 second")
  assert.isTrue(Exit.isFailure(yield* Fiber.join(late)))
  const wrong = yield* hello("wrong-key")
  yield* TestClock.adjust("1 second")
  assert.strictEqual(wrong.ended(), 1008)
  demo.close()
})

const bridge = memoryBridge({ callTimeoutMs: 1000 })

describe("observability", () => {
  it.effect("makes one span per session and per call, which name the tool and the outcome and nothing else", () =>
    Effect.gen(function* () {
      const { layer, spans } = recording()
      yield* scenario.pipe(Effect.provide(bridge), Effect.provide(layer))
      const calls = spans.filter(({ name }) => name === "frontend_tools.call")
      assert.deepStrictEqual(
        calls.map(({ attributes }) => attributes.get("frontend_tools.outcome")),
        ["Success", "ApplicationError", "DeadlineExceeded", "CallAborted"]
      )
      assert.deepStrictEqual(Object.fromEntries(calls[0]?.attributes ?? []), {
        "frontend_tools.namespace": "demo",
        "frontend_tools.raw_name": "read",
        "frontend_tools.public_name": "demo__read",
        "frontend_tools.outcome": "Success"
      })
      const [session, ...more] = spans.filter(({ name }) => name === "frontend_tools.session")
      assert.deepStrictEqual(more, [])
      assert.strictEqual(session?.attributes.get("frontend_tools.outcome"), "the application left")
      assert.isTrue(spans.every(({ status }) => status._tag === "Ended"))
    })
  )

  it.effect("hangs a call's span below its caller's", () =>
    Effect.gen(function* () {
      const { layer, spans } = recording()
      yield* Effect.gen(function* () {
        const demo = yield* connect("demo")
        registerReads(demo, "read")
        demo.listen((text) => demo.say({ type: "callResult", callId: JSON.parse(text).callId, ok: true }))
        yield* Effect.withSpan(call("demo__read", {}), "agent step")
      }).pipe(Effect.provide(bridge), Effect.provide(layer))
      const span = spans.find(({ name }) => name === "frontend_tools.call")
      const parent = span === undefined ? Option.none() : span.parent
      assert.strictEqual(Option.isSome(parent) && parent.value._tag === "Span" ? parent.value.name : "", "agent step")
    })
  )

  it.effect("counts calls by outcome, their durations, refusals, sessions, tools and traffic", () =>
    Effect.gen(function* () {
      yield* scenario.pipe(Effect.provide(bridge))
      const seen = new Map<string, unknown>()
      for (const { attributes, id, state } of yield* Metric.snapshot) {
        const label = attributes === undefined ? "" : `:${Object.values(attributes).join()}`
        seen.set(id + label, state)
      }
      const count = (name: string) => {
        const state = seen.get(name)
        return typeof state === "object" && state !== null && "count" in state ? Number(state.count) : undefined
      }
      for (const outcome of ["Success", "ApplicationError", "DeadlineExceeded", "CallAborted"]) {
        assert.strictEqual(count(`frontend_tools_calls_total:${outcome}`), 1, outcome)
      }
      assert.strictEqual(count("frontend_tools_call_duration_ms"), 4)
      assert.strictEqual(count("frontend_tools_handshakes_refused_total:auth_failed"), 1)
      assert.isAbove(count("frontend_tools_received_characters_total") ?? 0, 0)
      assert.isAbove(count("frontend_tools_sent_characters_total") ?? 0, 0)
      assert.deepInclude(seen.get("frontend_tools_sessions"), { value: 0 })
      assert.deepInclude(seen.get("frontend_tools_mirrored_tools"), { value: 0 })
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("logs what happens with the namespace, and never a key, an argument or a result", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
      const { layer, spans } = recording()
      yield* scenario.pipe(
        Effect.provide(bridge),
        Effect.provide(Layer.mergeAll(logger, layer, Layer.succeed(References.MinimumLogLevel, "All")))
      )
      const text = lines.join("\n")
      assert.include(text, "session opened")
      assert.include(text, "registered demo__read")
      assert.include(text, "session closed: the application left")
      assert.include(text, "handshake refused: auth_failed")
      // Who was refused has no namespace.
      const ofSessions = lines.filter((line) => !line.includes("handshake refused"))
      assert.isTrue(ofSessions.every((line) => line.includes('"namespace":"demo"')))
      const traced = JSON.stringify(spans.map(({ attributes, name }) => [name, ...attributes]))
      for (const secret of ["demo-key", "wrong-key", "secret-argument", "secret-result"]) {
        assert.notInclude(text, secret)
        assert.notInclude(traced, secret)
      }
    })
  )
})
