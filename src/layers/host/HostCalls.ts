/** One call of a tool, from its arguments to its outcome. */
import { Effect } from "effect"
import type { CallError, CallFailure } from "../../domain/bridge/BridgeError.ts"
import { type HostTool, WriteGrant, type WriteTool } from "../../domain/bridge/HostTool.ts"
import { type CallOutcome, type FailureReason, failure, success } from "./CallOutcome.ts"
import type { HostCatalog, HostEntry } from "./HostCatalog.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"
import type { Write, WritePolicy } from "./WritePolicy.ts"

/** A call as a host gets it from its model. */
export interface HostCall {
  readonly publicName: string
  readonly args: unknown
  readonly toolCallId?: string | undefined
  /** Whether the tool that has the name now is offered to this caller. */
  readonly offers: (tool: HostTool) => boolean
}

export interface HostCalls {
  /**
   * Runs the tool that has the name now: checks the arguments, gets the grant where
   * it writes, checks the result. Whatever goes wrong is an outcome; interruption is
   * the caller's abort.
   */
  readonly run: (call: HostCall) => Effect.Effect<CallOutcome>
  /** The write that a person has to be asked about, if the call is one and could run. */
  readonly write: (call: HostCall) => Write | undefined
}

const reasonOf = (failed: CallFailure["_tag"]): FailureReason => {
  switch (failed) {
    case "ApplicationError":
    case "AdminRefused":
      return "ApplicationFailed"
    case "DeadlineExceeded":
      return "TimedOut"
    case "ConnectionClosed":
    case "SessionGone":
      return "Disconnected"
    case "NotGranted":
      return "NotAllowed"
    case "CallAborted":
    case "Overloaded":
    case "NotJson":
      return "Unavailable"
  }
}

export const makeHostCalls = (catalog: HostCatalog, profile: SchemaProfile, policy: WritePolicy): HostCalls => {
  const offered = ({ offers, publicName }: HostCall): HostEntry | undefined => {
    const entry = catalog.find(publicName)
    return entry !== undefined && offers(entry.tool) ? entry : undefined
  }

  const toOutcome = ({ outputSchema, publicName }: HostTool, value: unknown): CallOutcome => {
    if (outputSchema === undefined) return success(value)
    const mismatches = profile.mismatches(outputSchema, value, "result")
    return mismatches.length === 0
      ? success(value)
      : failure("InvalidResult", `tool "${publicName}" returned invalid output: ${mismatches.join("; ")}`)
  }

  const settle = (tool: HostTool, call: Effect.Effect<unknown, CallError>): Effect.Effect<CallOutcome> =>
    call.pipe(
      Effect.match({
        onSuccess: (value) => toOutcome(tool, value),
        onFailure: (error) => failure(reasonOf(error.reason._tag), error.message)
      }),
      Effect.catchDefect((defect) =>
        Effect.logError(`tool "${tool.publicName}" failed unexpectedly`, defect).pipe(
          Effect.as(failure("Unexpected", `tool "${tool.publicName}" failed unexpectedly`))
        )
      )
    )

  const runWrite = Effect.fnUntraced(function* (tool: WriteTool, write: Write) {
    const decision = yield* policy.decide(write)
    return decision._tag === "Refused"
      ? failure("NotAllowed", decision.message)
      : yield* settle(tool, Effect.provideService(tool.call(write.args), WriteGrant, decision.grant))
  })

  return {
    run: (call) =>
      Effect.suspend(() => {
        const { args, publicName, toolCallId } = call
        const entry = offered(call)
        if (entry === undefined) {
          return Effect.succeed(
            failure("Gone", `tool "${publicName}" is not available now: its application left or took it back`)
          )
        }
        const { gone, tool } = entry
        const mismatches = profile.mismatches(tool.parametersSchema, args, "arguments")
        if (mismatches.length > 0) {
          const message = `invalid arguments for tool "${publicName}": ${mismatches.join("; ")}`
          return Effect.succeed(failure("InvalidArguments", message))
        }
        return tool.access === "read"
          ? settle(tool, tool.call(args))
          : runWrite(tool, { tool, args, gone, toolCallId })
      }),

    write: (call) => {
      const { args, toolCallId } = call
      const entry = offered(call)
      if (entry === undefined || entry.tool.access === "read") return undefined
      const { gone, tool } = entry
      return profile.mismatches(tool.parametersSchema, args, "arguments").length === 0
        ? { tool, args, gone, toolCallId }
        : undefined
    }
  }
}
