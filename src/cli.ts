#!/usr/bin/env node
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Exit } from "effect"
import { main } from "./cli/main.ts"

NodeRuntime.runMain(main, {
  // Told already, in one line.
  disableErrorReporting: true,
  // A signal is the ordinary way to end a bridge: everything was closed in order.
  teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
})
