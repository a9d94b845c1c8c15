/**
 * `toolkit.ts`: prints, as JSON, what the toolkit host adds to a call, over the memory host, whose way is the
 * shortest that a host can have, in microseconds. Both call the same application, in memory, in one
 * process, so that the difference is the host alone.
 */
import { Context, Effect, Exit, Layer, References, Scope, Stream } from "effect"
import { MemoryHost, type ToolHost } from "../src/index.ts"
import { TestApplication, TestBridge, TestTool } from "../src/testing.ts"
import { MirroredToolkit, ToolkitHost } from "../src/toolkit.ts"
import { quantile } from "./harness.ts"

const CALLS = 4000
const ROUNDS = 60

const tool = TestTool.read({
  name: "small",
  parametersSchema: { type: "object", properties: { n: { type: "number" } } },
  run: () => Effect.succeed({ ok: true })
})

/** An application on a host, and one call of its tool. */
const start = async <A>(
  host: Layer.Layer<A | ToolHost>,
  call: (context: Context.Context<A>) => Effect.Effect<unknown, unknown>
) => {
  const scope = Scope.makeUnsafe()
  const started = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(TestBridge.layer().pipe(Layer.provideMerge(host)), scope)
    const application = yield* TestApplication.connect("app", { tools: [tool] }).pipe(
      Effect.provide(context),
      Scope.provide(scope)
    )
    // Not what a host costs, and it would fill the memory.
    const calls = application.calls()
    const forget = () => {
      if (Array.isArray(calls)) calls.length = 0
    }
    return { one: call(context), forget }
  }).pipe(Effect.provideService(References.MinimumLogLevel, "Error"))
  const { forget, one } = await Effect.runPromise(started)
  const many = Effect.gen(function* () {
    for (let i = 0; i < CALLS; i++) yield* one
  })
  return {
    /** Microseconds per call, one after the other. */
    round: async () => {
      forget()
      const before = performance.now()
      await Effect.runPromise(many)
      return ((performance.now() - before) * 1000) / CALLS
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

const args = { n: 1 }

const hosts = [
  await start(MemoryHost.layer(), (context) => Context.get(context, MemoryHost).call("app__small", args)),
  await start(ToolkitHost.layer, (context) => Context.get(context, MirroredToolkit).call("app__small", args)),
  // As `LanguageModel` does it for each call of a model.
  await start(ToolkitHost.layer, (context) =>
    Effect.flatMap(Context.get(context, MirroredToolkit).tools(), ({ handle }) =>
      Effect.flatMap(handle("app__small", args, "call"), Stream.runDrain)
    )
  )
]

// The difference of two hosts is small beside what a busy machine adds to either, so what
// counts is the tenth percentile of many short rounds.
const samples = hosts.map((): Array<number> => [])
for (let i = 0; i < ROUNDS; i++) {
  for (const [index, { round }] of hosts.entries()) samples[index]?.push(await round())
}
const [memory = Number.NaN, toolkit = Number.NaN, generation = Number.NaN] = samples.map((of) => quantile(of, 0.1))
console.log(JSON.stringify({ memory, toolkit: toolkit - memory, generation: generation - memory }))
for (const { close } of hosts) await close()
