/** The command as a program of its own. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { backendCommand } from "../../../src/cli/backend.ts"

Command.make("effect-frontend-tools").pipe(
  Command.withSubcommands([backendCommand]),
  Command.run({ version: "0" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
