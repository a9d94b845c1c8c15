/**
 * The real client in a process of its own, to be killed:
 * `node crashClient.ts <backend> <conversation> <folder> <log>`. It goes on with what an
 * earlier process of it left, and says `done` when the turn is over.
 */
import { appendFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Redacted, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { KeyValueStore } from "effect/persistence"
import * as Aidream from "../../../src/aidream.ts"

const [, , baseUrl = "", conversation = "", folder = "", log = ""] = process.argv
const conversationId = Aidream.ConversationId.make(conversation)

const look = Aidream.makeTool({
  name: "look",
  tier: "read",
  announce: true,
  parameters: Schema.Struct({ key: Schema.String }),
  run: ({ key }) =>
    // The effect that must not happen twice.
    Effect.sync(() => appendFileSync(log, `${key}\n`)).pipe(
      Effect.andThen(Effect.sleep(30)),
      Effect.as({ saw: { key } })
    )
})

const client = Aidream.layer({
  config: { baseUrl, resultBackoff: 50, resumeBackoff: 50, claimTtl: 500 }
}).pipe(
  Layer.provideMerge(Aidream.Credentials.layerBearer(Redacted.make("ada"))),
  Layer.provideMerge(KeyValueStore.layerFileSystem(folder)),
  Layer.provideMerge(FetchHttpClient.layer),
  Layer.provideMerge(NodeServices.layer)
)

/** The state a stream of the turn ended in; `undefined` when it could not be opened. */
const outcomeOf = (stream: Stream.Stream<Aidream.AgentEvent, Aidream.AidreamError>) =>
  stream.pipe(
    Stream.runFold(
      (): string | undefined => undefined,
      (before, event) => (event._tag === "TurnEnded" ? event.outcome : before)
    ),
    Effect.catch(({ reason }) =>
      Effect.succeed(reason._tag === "Refused" ? (reason.error.code ?? "refused") : undefined)
    )
  )

const program = Effect.gen(function* () {
  const library = yield* Aidream.ToolLibrary
  yield* library.register(look)
  const runs = yield* Aidream.AgentRuns
  yield* runs.recover
  while (true) {
    const outcome = yield* outcomeOf(runs.open(conversationId, { resume: true }))
    if (outcome === "complete" || outcome === "settled") return yield* Console.log("done")
    if (outcome === "conversation_not_found") {
      const agentId = Aidream.AgentId.make("any")
      const started = yield* outcomeOf(runs.run({ agentId, message: "go", conversationId, isNew: true }))
      if (started === "complete") return yield* Console.log("done")
    }
    yield* Effect.sleep(50)
  }
}).pipe(Effect.scoped, Effect.provide(client))

NodeRuntime.runMain(program)
