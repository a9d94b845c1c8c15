/** The whole command line, as an effect that the entry point runs. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Logger, Option, References } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"
import { backendCommand } from "./backend.ts"
import { logLevelFromEnv } from "./bridgeFlags.ts"
import { explainConfig, explainInvocation, toLine } from "./complaint.ts"
import { keyCommand } from "./key.ts"
import { mcpCommand } from "./mcp.ts"
import { serveCommand } from "./serve.ts"
import { VERSION } from "./version.ts"

const NAME = "effect-frontend-tools"

const root = Command.make(NAME).pipe(
  Command.withDescription("Let a model use the tools that live inside running applications"),
  Command.withSubcommands([mcpCommand, serveCommand, keyCommand, backendCommand])
)

// Standard output belongs to what a command prints, and with `mcp` to the protocol.
const logging = Layer.merge(
  Layer.succeed(Logger.LogToStderr, true),
  Layer.unwrap(
    Effect.map(logLevelFromEnv, (level) =>
      Option.isSome(level) ? Layer.succeed(References.MinimumLogLevel, level.value) : Layer.empty
    )
  )
)

const complain = (message: string) => Console.error(toLine(NAME, message))

const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? complain(`${event.errors.map(explainInvocation).join("; ")} (see ${event.commandPath.join(" ")} --help)`)
      : CliOutput.defaultPresenter.present(event)
})

/** Runs the command of `process.argv`. Every failure has been told in one line on standard error. */
export const main = Command.run(root, { version: VERSION, renderErrors: true }).pipe(
  Effect.provide(Layer.mergeAll(logging, presenter).pipe(Layer.provideMerge(NodeServices.layer))),
  Effect.tapError((error) => {
    // The presenter has told those already.
    if (CliError.isCliError(error)) return Effect.void
    return complain(error._tag === "ConfigError" ? explainConfig(error) : error.message)
  }),
  // A fault of our own: whoever reports it needs all of it.
  Effect.tapDefect((defect) => Console.error(`${NAME}:`, defect))
)
