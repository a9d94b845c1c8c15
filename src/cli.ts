#!/usr/bin/env node
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, MutableRef, Runtime } from "effect"
import { SignalStatus } from "./cli/chatExit.ts"
import { main } from "./cli/main.ts"

const signalStatus = MutableRef.make(0)

NodeRuntime.runMain(Effect.provideService(main, SignalStatus, signalStatus), {
  // Told already, in one line.
  disableErrorReporting: true,
  teardown: (exit, onExit) => {
    if (Exit.isSuccess(exit)) return onExit(0)
    if (Cause.hasInterruptsOnly(exit.cause)) return onExit(MutableRef.get(signalStatus))
    return onExit(Runtime.getErrorExitCode(Cause.squash(exit.cause)))
  }
})
