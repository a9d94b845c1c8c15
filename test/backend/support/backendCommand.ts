/** The command as a program of its own. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { backendCommand } from "../../../src/cli/backend.ts"

Command.make("effect-frontend-tools").pipe(
  Command.withSubcommands([backendCommand]),
  Command.run({ version: "0" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
