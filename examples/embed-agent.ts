import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Stream, Terminal } from "effect"
import { Chat } from "effect/ai"
import { Bridge, BridgeServer, WebSocketListener } from "effect-frontend-tools"
import { ScriptedModel } from "effect-frontend-tools/testing"
import { Approval, MirroredToolkit, ToolkitHost } from "effect-frontend-tools/toolkit"

/** The agent loop: generate, run the calls, and go on until the model has nothing more to call. */
const answer = Effect.fn("answer")(function* (question: string) {
  const toolkit = yield* MirroredToolkit
  const chat = yield* Chat.empty
  // An effect, not a list: each step is offered the tools that there are by then.
  const tools = toolkit.tools({ namespaces: ["todo"] })
  let response = yield* chat.generateText({ prompt: question, toolkit: tools })
  while (response.toolCalls.length > 0) {
    for (const { name, result } of response.toolResults) yield* Console.log(`${name}: ${JSON.stringify(result)}`)
    response = yield* chat.generateText({ prompt: [], toolkit: tools })
  }
  return response.text
})

/** Each write is put to the person at this terminal. */
const AskHere = Layer.effect(
  Approval,
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    return Approval.of({
      request: ({ question }) =>
        terminal.display(`${question}\n[y/N] `).pipe(
          Effect.andThen(terminal.readLine),
          Effect.map((line) => (line.trim() === "y" ? Approval.allowedOnce : Approval.refused())),
          Effect.orElseSucceed(() => Approval.refused("the terminal is closed"))
        )
    })
  })
)

/** In the place of a provider's LanguageModel: it says what it is told to. */
const Model = ScriptedModel.layerScript({
  rules: [
    {
      answers: [
        { calls: [{ tool: "todo__add", arguments: { title: "Buy milk" } }] },
        { calls: [{ tool: "todo__list" }] },
        { text: "Milk is on your list." }
      ]
    }
  ]
})

const program = Effect.gen(function* () {
  const { url } = yield* WebSocketListener
  const { events } = yield* BridgeServer
  yield* Console.log(`applications connect to ${url}`)
  yield* events.pipe(
    Stream.filter(({ _tag }) => _tag === "ToolsRegistered"),
    Stream.runForEach(() => Effect.flatMap(answer("Put milk on my list."), Console.log))
  )
})

program.pipe(
  Effect.provide(
    Layer.mergeAll(
      // The settings come from FRONTEND_TOOLS_* variables.
      Bridge.layerConfig.pipe(Layer.provideMerge(ToolkitHost.layerApproval), Layer.provide(AskHere)),
      Model
    )
  ),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
