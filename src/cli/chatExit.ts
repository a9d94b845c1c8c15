/** What a chat ends with, for a script that started it. */
import { Context, Data, MutableRef, Runtime } from "effect"
import type { TurnOutcome } from "../domain/aidream/AgentEvent.ts"

/** Each status of the process and what it means. */
export const exitCodes = [
  [0, "every turn was finished"],
  [1, "it could not start: a flag, a setting, a port that is taken, an application that never came"],
  [2, "the backend refused a message, or could not be reached"],
  [3, "a turn failed, or was cancelled"],
  [4, "a turn is not over; go on later with --conversation"],
  [130, "a signal ended it; what it was doing goes on with --conversation"]
] as const

export type ExitCode = (typeof exitCodes)[number][0]

/** A chat that did not end well. */
export class ChatExit extends Data.TaggedError("ChatExit")<{
  readonly code: ExitCode
  readonly message: string
}> {
  override get [Runtime.errorExitCode]() {
    return this.code
  }
}

/** The status that an ended turn stands for. */
export const codeOf = (outcome: TurnOutcome): ExitCode => {
  switch (outcome) {
    case "complete":
    case "idle":
    case "settled":
    case "superseded":
      return 0
    case "failed":
    case "cancelled":
      return 3
    case "paused":
    case "truncated":
      return 4
  }
}

/**
 * The status when a signal ends the process: 0 by default, since a signal is the ordinary
 * way to end a bridge. A command for which it is not sets another.
 */
export const SignalStatus = Context.Reference<MutableRef.MutableRef<number>>("effect-frontend-tools/cli/SignalStatus", {
  defaultValue: () => MutableRef.make(0)
})
