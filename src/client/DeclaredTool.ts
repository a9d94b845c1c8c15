import { Result, Schema, SchemaIssue } from "effect"
import { RemoteTool } from "../domain/bridge/RemoteTool.ts"
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

const decodeTool = Schema.decodeUnknownResult(RemoteTool)
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const show = (name: unknown): string => (typeof name === "string" ? JSON.stringify(name) : String(name))

/**
 * Checks a tool as the bridge would, so that a fault shows where it was made. Extra
 * fields are kept: a newer bridge may know them.
 */
export const checkTool = (input: object): Result.Result<WireTool, ToolsRefused> => {
  const name: unknown = "name" in input ? input.name : undefined
  const refused = (subject: string, fault: string) =>
    new ToolsRefused({
      code: "invalid_tool",
      message: `${subject} ${show(name)} ${fault}`,
      names: typeof name === "string" ? [name] : []
    })
  // An option that is spelled out as undefined is as good as absent, and so it is on the wire.
  const spec = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
  const decoded = decodeTool(spec)
  if (Result.isFailure(decoded)) {
    const [first] = issuesOf(decoded.failure.issue).issues
    return Result.fail(refused(first?.path?.[0] === "name" ? "tool name" : "tool", first?.message ?? "is malformed"))
  }
  return Result.try({
    try: () => ({ name: decoded.success.name, text: JSON.stringify(spec) }),
    catch: (error) => refused("tool", `cannot be carried as JSON: ${describeThrown(error)}`)
  })
}
