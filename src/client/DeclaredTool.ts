import { Option, Result, Schema, SchemaIssue } from "effect"
import { RemoteTool } from "../domain/bridge/RemoteTool.ts"
import type { Outcome } from "./answer.ts"

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

/**
 * A tool as the client runs it. `start` begins a call and returns at once; `done` is
 * called when it ended, and calls after the first are ignored.
 */
export interface DeclaredTool {
  readonly spec: RemoteTool
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
export const checkTool = (input: object): Result.Result<RemoteTool, ToolsRefused> => {
  const name: unknown = "name" in input ? input.name : undefined
  // An option that is spelled out as undefined is as good as absent, and so it is on the wire.
  const spec = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
  return decodeTool(spec).pipe(
    Result.map((tool) => ({ ...spec, ...tool })),
    Result.mapError((error) => {
      const [first] = issuesOf(error.issue).issues
      const subject = first?.path?.[0] === "name" ? "tool name" : "tool"
      return new ToolsRefused({
        code: "invalid_tool",
        message: `${subject} ${show(name)} ${first?.message ?? "is malformed"}`,
        names: Option.toArray(Option.liftPredicate(name, (value) => typeof value === "string"))
      })
    })
  )
}
