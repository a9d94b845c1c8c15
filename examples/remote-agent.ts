import { homedir } from "node:os"
import { join } from "node:path"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Console, DateTime, Effect, Layer, Schema, Stream, SubscriptionRef } from "effect"
import { FetchHttpClient } from "effect/http"
import * as Aidream from "effect-frontend-tools/aidream"

// What the agent may use of this program. A tool that reads runs; one that acts is asked about.
const readClock = Aidream.makeTool({
  name: "read_clock",
  description: "The time, as this machine has it.",
  tier: "read",
  announce: true,
  parameters: Schema.Struct({}),
  run: () => Effect.map(DateTime.now, DateTime.formatIso)
})
const notify = Aidream.makeTool({
  name: "notify",
  description: "Shows the user a short notice.",
  tier: "action",
  announce: true,
  parameters: Schema.Struct({ text: Schema.NonEmptyString }),
  run: ({ text }) => Effect.as(Console.log(`notice: ${text}`), { shown: true })
})

// Somebody has to say yes. This program always does; yours shows the question to a person.
const approve = Effect.gen(function* () {
  const approvals = yield* Aidream.Approvals
  yield* Stream.runForEach(SubscriptionRef.changes(approvals.open), (questions) =>
    Effect.forEach(questions, ({ callId, conversationId, tool }) =>
      Effect.andThen(Console.log(`may it run ${tool}? yes`), approvals.decide({ conversationId, callId, allow: true }))
    )
  )
})

const program = Effect.gen(function* () {
  const runs = yield* Aidream.AgentRuns
  yield* Effect.forkScoped(approve)

  // What an earlier process was killed in the middle of goes on: no call runs twice, no answer is lost.
  yield* runs.recover

  // One stream over the whole turn: its start, its suspensions, the calls that run here, its resumes.
  yield* Stream.runForEach(
    runs.run({ agentId: Aidream.AgentId.make("assistant"), message: "What time is it?" }),
    (event) => {
      switch (event._tag) {
        case "Stream": {
          const { event: said } = event
          return said._tag === "chunk" ? Effect.sync(() => process.stdout.write(said.data.text)) : Effect.void
        }
        case "RunEnded":
          return event.suspended ? Console.log("suspended until its calls are answered") : Effect.void
        case "TurnEnded":
          return Console.log(`\nthe turn is ${event.outcome}`)
        default:
          return Effect.void
      }
    }
  )
})

const tools = Layer.effectDiscard(Effect.flatMap(Aidream.ToolLibrary, (library) => library.register(readClock, notify)))

const settings = Effect.gen(function* () {
  const baseUrl = yield* Config.String("BACKEND_URL")
  const token = yield* Config.Redacted("BACKEND_TOKEN")
  const folder = yield* Config.String("JOURNAL").pipe(Config.withDefault(join(homedir(), ".my-program")))
  return tools.pipe(
    Layer.provideMerge(Aidream.layer({ config: { baseUrl } })),
    Layer.provide(Aidream.Credentials.layerBearer(token)),
    Layer.provide(Aidream.layerFileStore(folder)),
    Layer.provide(FetchHttpClient.layer)
  )
})

program.pipe(
  Effect.scoped,
  Effect.provide(Layer.unwrap(settings)),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
