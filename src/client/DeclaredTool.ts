import { Result, Schema } from "effect"
import { decodeClientFrame } from "../domain/bridge/Frame.ts"
import { describeThrown, type Outcome } from "./answer.ts"

/** Why nobody waits for a call any more: the bridge said so, or the connection is gone. */
export type AbortReason = "aborted" | "timeout" | "revoked" | "disconnected"

/** What a handler may know about the call it answers. */
export interface CallInfo {
  readonly callId: string
  /** The tool's raw name. */
  readonly name: string
}

/** A call that has begun. */
export interface RunningCall {
  /** Tells the handler that nobody waits any more. */
  abort(reason: AbortReason): void
}

/** A tool as the bridge gets it. */
export interface WireTool {
  /** The tool's raw name. */
  readonly name: string
  /** The tool as JSON, as it was when it was declared. */
  readonly text: string
}

/**
 * A tool as the client runs it. `start` begins a call and returns at once; `done` is
 * called when it ended, and calls after the first are ignored.
 */
export interface DeclaredTool extends WireTool {
  readonly start: (args: unknown, call: CallInfo, done: (outcome: Outcome) => void) => RunningCall
}

/** The bridge, or the client on its behalf, did not take a batch of tools. */
export class ToolsRefused extends Schema.TaggedError<ToolsRefused>()("ToolsRefused", {
  /** `invalid_tool`, `too_many_tools`, or a code that a newer bridge added. */
  code: Schema.String,
  message: Schema.String,
  /** Raw names of the batch. */
  names: Schema.Array(Schema.String)
}) {}

/**
 * Checks a tool as the bridge would, so that a fault shows where it was made. Extra
 * fields are kept: a newer bridge may know them.
 */
export const checkTool = (input: object): Result.Result<WireTool, ToolsRefused> => {
  const name = "name" in input && typeof input.name === "string" ? input.name : ""
  const refuse = (code: string, message: string) =>
    Result.fail(new ToolsRefused({ code, message, names: name === "" ? [] : [name] }))
  let text: string
  try {
    // Handlers have no JSON form and stay behind.
    text = JSON.stringify(input)
  } catch (error) {
    return refuse("invalid_tool", `tool "${name}" cannot be carried as JSON: ${describeThrown(error)}`)
  }
  const decoded = decodeClientFrame(`{"type":"register","tools":[${text}]}`, "session")
  return Result.isSuccess(decoded)
    ? Result.succeed({ name, text })
    : refuse(decoded.failure.code, decoded.failure.message)
}
