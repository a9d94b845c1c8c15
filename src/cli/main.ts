/** The whole command line, as an effect that the entry point runs. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Logger, Option, References } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"
import { logLevelFromEnv } from "./bridgeFlags.ts"
import { keyCommand } from "./key.ts"
import { mcpCommand } from "./mcp.ts"
import { serveCommand } from "./serve.ts"
import { VERSION } from "./version.ts"

const NAME = "effect-frontend-tools"

const root = Command.make(NAME).pipe(
  Command.withDescription("Let a model use the tools that live inside running applications"),
  Command.withSubcommands([mcpCommand, serveCommand, keyCommand])
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

const complain = (message: string) => Console.error(`${NAME}: ${message.replaceAll("\n", " ")}`)

const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? complain(`${event.errors.map(({ message }) => message).join("; ")} (see ${event.commandPath.join(" ")} --help)`)
      : CliOutput.defaultPresenter.present(event)
})

/** Runs the command of `process.argv`. Every failure has been told in one line on standard error. */
export const main = Command.run(root, { version: VERSION, renderErrors: true }).pipe(
  Effect.tapError((error) => (CliError.isCliError(error) ? Effect.void : complain(error.message))),
  Effect.provide(Layer.mergeAll(logging, presenter).pipe(Layer.provideMerge(NodeServices.layer))),
  Effect.catchTag("ConfigError", (error) => Effect.andThen(complain(error.message), Effect.fail(error)))
)
