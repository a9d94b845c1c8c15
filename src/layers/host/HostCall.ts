/** One call of a tool, from its arguments to its outcome: the way of every host that asks by itself. */
import { Cause, Deferred, Effect, Option } from "effect"
import type { CallError, CallFailure } from "../../domain/bridge/BridgeError.ts"
import { type HostTool, WriteGrant, type WriteTool } from "../../domain/bridge/HostTool.ts"
import { type CallOutcome, type FailureReason, failure, success } from "./CallOutcome.ts"
import type { HostEntry } from "./HostCatalog.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"
import type { Write, WriteDecision } from "./WriteDecision.ts"

/** What a host brings along for a call. `Asked` is an answer of its own: the call has to come again. */
export interface HostCallOptions<Asked, R> {
  readonly profile: SchemaProfile
  /** Decides on a write, whose arguments fit. */
  readonly decide: (write: Write) => Effect.Effect<WriteDecision | Asked, never, R>
  readonly toolCallId?: string | undefined
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

/** What is wrong with the arguments of a call, as an outcome; nothing when they fit. */
export const argumentsFailure = (
  { parametersSchema, publicName }: HostTool,
  args: unknown,
  profile: SchemaProfile
): CallOutcome | undefined => {
  const mismatches = profile.mismatches(parametersSchema, args, "arguments")
  return mismatches.length === 0
    ? undefined
    : failure("InvalidArguments", `invalid arguments for tool "${publicName}": ${mismatches.join("; ")}`)
}

const outcomeOf = ({ outputSchema, publicName }: HostTool, value: unknown, profile: SchemaProfile): CallOutcome => {
  const mismatches = outputSchema === undefined ? [] : profile.mismatches(outputSchema, value, "result")
  return mismatches.length === 0
    ? success(value)
    : failure("InvalidResult", `tool "${publicName}" returned invalid output: ${mismatches.join("; ")}`)
}

const failed = ({ publicName }: HostTool, cause: Cause.Cause<CallError>): Effect.Effect<CallOutcome> => {
  const error = Cause.findErrorOption(cause)
  if (Option.isSome(error)) return Effect.succeed(failure(reasonOf(error.value.reason._tag), error.value.message))
  if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
  return Effect.logError(`tool "${publicName}" failed unexpectedly`, cause).pipe(
    Effect.as(failure("Unexpected", `tool "${publicName}" failed unexpectedly`))
  )
}

// One continuation for every way to end: this is the path of each call.
const settle = (
  tool: HostTool,
  call: Effect.Effect<unknown, CallError>,
  profile: SchemaProfile
): Effect.Effect<CallOutcome> =>
  Effect.matchCauseEffect(call, {
    onSuccess: (value) => Effect.succeed(outcomeOf(tool, value, profile)),
    onFailure: (cause) => failed(tool, cause)
  })

const runWrite = Effect.fnUntraced(function* <Asked extends { readonly _tag: "Ask" }, R>(
  tool: WriteTool,
  write: Write,
  { decide, profile }: HostCallOptions<Asked, R>
) {
  const decision = yield* decide(write)
  if (decision._tag === "Ask") return decision
  if (decision._tag === "Refused") return failure("NotAllowed", decision.message)
  // The grant fits no other tool object: this is for the message only.
  if (Deferred.isDoneUnsafe(write.gone)) {
    return failure("Gone", `tool "${tool.publicName}" was taken back or replaced; nothing was run`)
  }
  return yield* settle(tool, Effect.provideService(tool.call(write.args), WriteGrant, decision.grant), profile)
})

/**
 * `runTool` for a host whose way of asking can be that the call has to come again: then
 * the outcome is what `decide` asked, and nothing was run.
 */
export const runAskingTool = <Asked extends { readonly _tag: "Ask" }, R>(
  { gone, tool }: HostEntry,
  args: unknown,
  options: HostCallOptions<Asked, R>
): Effect.Effect<CallOutcome | Asked, never, R> =>
  Effect.suspend((): Effect.Effect<CallOutcome | Asked, never, R> => {
    const misfit = argumentsFailure(tool, args, options.profile)
    if (misfit !== undefined) return Effect.succeed(misfit)
    return tool.access === "read"
      ? settle(tool, tool.call(args), options.profile)
      : runWrite(tool, { tool, args, gone, toolCallId: options.toolCallId }, options)
  })

/**
 * Runs the tool of an entry: checks the arguments, gets the grant where it writes,
 * checks the result. Whatever goes wrong is an outcome, and a defect is logged;
 * interruption is the caller's abort.
 */
export const runTool: <R = never>(
  entry: HostEntry,
  args: unknown,
  options: HostCallOptions<never, R>
) => Effect.Effect<CallOutcome, never, R> = runAskingTool

/** The outcome of a call whose tool is not there. */
export const toolGone = (publicName: string): CallOutcome =>
  failure("Gone", `tool "${publicName}" is not available now: its application left or took it back`)
