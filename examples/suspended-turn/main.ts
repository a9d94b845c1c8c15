/**
 * `node examples/suspended-turn/main.ts` after `npm run build`: a turn that outlives both of
 * its processes. Chat and backend are killed with SIGKILL, in turn, each while the other
 * waits for it; the turn ends as if nothing had happened, and each tool has run once.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Data, Effect, Exit, FileSystem, Schema, Scope } from "effect"
import { generateClientKey } from "effect-frontend-tools/protocol"
import { type ChatEvent, startBackend, startChat, startShop } from "./processes.ts"
import { makeWire } from "./wire.ts"

const tell = (who: string, what: string) => console.log(`${who.padEnd(10)}${what}`)

/** The agent's text over the whole turn, and the calls it has made so far. */
let said = ""
const seen = new Set<string>()

const Text = Schema.Struct({ text: Schema.String })

/** Tells of a chat's events what the story is about. */
const follow = (event: ChatEvent): void => {
  const { delegation, line, outcome, result } = event
  if (line?.event === "chunk" && Schema.is(Text)(line.data)) said += line.data.text
  if (event.event === "call_delegated" && delegation !== undefined) {
    const known = seen.has(delegation.callId)
    seen.add(delegation.callId)
    if (known) tell("chat", `finds ${delegation.toolName} in its journal`)
    else tell("backend", `delegates ${delegation.toolName}`)
  }
  if (event.event === "call_finished" && result !== undefined) {
    tell("chat", `has the answer of ${result.tool_name}: ${result.error_message ?? JSON.stringify(result.output)}`)
  }
  if (event.event === "run_opened" && event.resumed === true) tell("chat", "resumes the turn")
  if (event.event === "lost") tell("chat", "cannot reach the backend, and tries again")
  if (event.event === "turn_ended" && outcome === "complete") tell("chat", "the turn is complete")
}

/** The demonstration did not show what it is there to show. */
class Disproved extends Data.TaggedError("Disproved")<{ readonly message: string }> {}

const main = Effect.gen(function* () {
  const folder = yield* FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped())
  const notes = join(folder, "notes.txt")
  const key = generateClientKey()
  const db = join(folder, "backend.db")

  let backend = yield* startBackend({ db, port: 0 })
  const { port } = backend
  const wire = yield* makeWire(port)
  const options = { backend: wire.url, key, stateDir: folder }
  tell("backend", `keeps its conversations in ${db}`)

  const firstLife = yield* Scope.fork(yield* Effect.scope)
  const first = yield* startChat(
    { ...options, port: 0 },
    ["--wait-for", "shop", "--message", "Order me a hat"],
    follow
  ).pipe(Scope.provide(firstLife))
  const { port: bridgePort = 0, url: bridge = "" } = yield* first.event("listening")
  const { conversationId = "" } = yield* first.event("conversation")
  yield* startShop({ bridge, key, notes })

  yield* wire.holdAnswers(2)
  tell("demo", "both tools have run, no answer has arrived: kill -9 the chat")
  yield* first.kill
  yield* Scope.close(firstLife, Exit.void)

  tell("demo", "kill -9 the backend, and start it again")
  yield* backend.kill
  yield* wire.mend
  backend = yield* startBackend({ db, port })

  tell("demo", `start the chat again with --conversation ${conversationId}`)
  const second = yield* startChat({ ...options, port: bridgePort }, ["--conversation", conversationId], follow)

  const isSuspension = ({ suspended }: ChatEvent) => suspended === true
  yield* second.event("run_ended", isSuspension)
  tell("demo", "the turn is suspended a second time: kill -9 the backend, and start it again")
  yield* backend.kill
  backend = yield* startBackend({ db, port })

  const code = yield* second.exitCode
  const ran = readFileSync(notes, "utf8").trim().split("\n").sort()
  tell("agent", said)
  tell("shop", `ran: ${ran.join(", ")}`)
  if (code !== 0 || new Set(ran).size !== 3 || ran.length !== 3) {
    return yield* new Disproved({ message: `status ${code}, ${ran.length} runs` })
  }
  tell("demo", "each tool ran once")
})

main.pipe(
  Effect.scoped,
  Effect.tapError((error) => Console.error(error.message)),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
