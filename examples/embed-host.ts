import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Result, Terminal } from "effect"
import * as Tools from "effect-frontend-tools"

/** A host of one's own: whoever types `shop__cart {"id": 1}` is the model. */
const TerminalHost = Layer.effect(
  Tools.ToolHost,
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const profile = Tools.jsonSchemaProfile
    // What the host has, in the form in which it shows it.
    const catalog = yield* Tools.makeHostCatalog({
      profile,
      show: ({ access, description, publicName }) => Result.succeed(`${publicName} (${access}): ${description}`)
    })

    // A write needs a yes to this very call.
    const decide = ({ args, tool }: Tools.WriteDecision.Write) =>
      terminal.display(`${Tools.approvalText(tool, args)}\n[y/N] `).pipe(
        Effect.andThen(terminal.readLine),
        Effect.map((line) =>
          line === "y" ? Tools.WriteDecision.granted({ tool, args }) : Tools.WriteDecision.rejected(tool)
        ),
        Effect.orDie
      )

    const answer = Effect.fnUntraced(function* (line: string) {
      const [, name = "", json = "{}"] = /^(\S+)\s*(.*)$/.exec(line) ?? []
      const entry = catalog.find(name)
      if (entry === undefined)
        return catalog
          .entries()
          .map(({ shown }) => shown)
          .join("\n")
      const args = yield* Effect.try({ try: (): unknown => JSON.parse(json || "{}"), catch: String })
      const outcome = yield* Tools.runTool(entry, args, { profile, decide })
      return outcome._tag === "Success" ? JSON.stringify(outcome.value) : outcome.failure.message
    })

    yield* terminal.readLine.pipe(
      Effect.flatMap((line) => Effect.catch(answer(line), Effect.succeed)),
      Effect.flatMap((text) => terminal.display(`${text}\n`)),
      Effect.forever,
      Effect.forkScoped
    )
    return Tools.ToolHost.of({ profile, register: catalog.register })
  })
)

const program = Effect.gen(function* () {
  const { url } = yield* Tools.WebSocketListener
  yield* Console.log(`applications connect to ${url}; type the name of a tool, or nothing to see them all`)
  yield* Effect.never
})

program.pipe(
  Effect.provide(Tools.Bridge.layerConfig.pipe(Layer.provide(TerminalHost), Layer.provideMerge(NodeServices.layer))),
  NodeRuntime.runMain
)
