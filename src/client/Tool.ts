import { Effect, Exit, type Fiber, Schema, SchemaIssue, type Scope } from "effect"
import { CallErrorCode } from "../domain/bridge/ErrorCode.ts"
import type { JsonObject } from "../domain/bridge/RemoteTool.ts"
import { describeThrown, failed, type Outcome } from "./answer.ts"
import { type CallInfo, checkTool, type DeclaredTool, type ToolsRefused } from "./DeclaredTool.ts"
import { thrownOutcome } from "./FrontendToolsError.ts"
import { type DroppedKeyword, toHostSchema } from "./HostSchema.ts"

/**
 * What a handler fails with to tell the model more than `internal`: the code and the
 * message reach it as they are.
 */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  code: CallErrorCode,
  message: Schema.String
}) {
  /** The application does not allow it, for a reason that the model should read. */
  static readonly denied = (message: string): ToolFailure => new ToolFailure({ code: "denied", message })
  static readonly invalidArgs = (message: string): ToolFailure => new ToolFailure({ code: "invalid_args", message })
}

/** A tool of an application, whose handler needs `R`. */
export interface Tool<out R = never> {
  readonly name: string
  readonly description: string
  readonly readOnly: boolean
  readonly parametersSchema: JsonObject
  readonly outputSchema: JsonObject | undefined
  /** What the schemas on the wire cannot say. The handler still gets only what its own schema decodes. */
  readonly dropped: ReadonlyArray<DroppedKeyword>
  /** Answers a call with a JSON value. Interruption means that nobody waits any more. */
  readonly handle: (args: unknown, call: CallInfo) => Effect.Effect<unknown, unknown, R>
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** What is wrong where in a value, in one line. */
const faultsOf = (value: string, { issue }: Schema.SchemaError): string =>
  issuesOf(issue)
    .issues.map(({ message, path }) => `${[value, ...(path ?? []).map(String)].join(".")}: ${message}`)
    .join("; ")

const jsonSchemaOf = (schema: Schema.Constraint) => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema)
  return toHostSchema({ ...root, $defs: definitions })
}

/** The root of arguments is an object, which an empty struct alone does not say. */
const withObjectRoot = (schema: JsonObject): JsonObject => (schema.type === "object" ? schema : { type: "object" })

/**
 * Makes a tool of a schema and a handler.
 *
 * `parameters` gives the JSON Schema on the wire, in the subset that hosts take, and the
 * decoded argument of the handler; arguments that do not decode are answered with
 * `invalid_args` and the path, and do not reach it. `success` does the same for the
 * result. Without `readOnly: true` every call needs a person's approval.
 *
 * A handler that fails with `ToolFailure` keeps its code; any other failure and every
 * defect is `internal` with its text. Each call has a scope of its own.
 */
export const make = <P extends Schema.ConstraintDecoder<unknown>, A, E, R>(options: {
  /** 1 to 64 characters of `[A-Za-z0-9_-]`. */
  readonly name: string
  /** For the model: what the tool does, and when to use it. */
  readonly description: string
  readonly parameters: P
  readonly success?: Schema.ConstraintCodec<A, unknown, unknown> | undefined
  readonly readOnly?: boolean | undefined
  readonly handler: (args: P["Type"], call: CallInfo) => Effect.Effect<A, E, R>
}): Tool<Exclude<R, Scope.Scope>> => {
  const { description, handler, name, parameters, readOnly = false, success } = options
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(parameters))
  const encode = success === undefined ? undefined : Schema.encodeUnknownEffect(Schema.toCodecJson(success))
  const input = jsonSchemaOf(parameters)
  const output = success === undefined ? undefined : jsonSchemaOf(success)
  return {
    name,
    description,
    readOnly,
    parametersSchema: withObjectRoot(input.schema),
    outputSchema: output?.schema,
    dropped: [...input.dropped, ...(output?.dropped ?? [])],
    handle: (args, call) => {
      const result = decode(args ?? {}).pipe(
        Effect.mapError((error) => ToolFailure.invalidArgs(faultsOf("arguments", error))),
        Effect.flatMap((decoded) => handler(decoded, call)),
        Effect.scoped
      )
      if (encode === undefined) return result
      return Effect.flatMap(result, (value) =>
        Effect.mapError(
          encode(value),
          (error) => `the result is not what the tool declares: ${faultsOf("result", error)}`
        )
      )
    }
  }
}

const isToolFailure = Schema.is(ToolFailure)

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): Outcome => {
  if (Exit.isSuccess(exit)) return { ok: true, result: exit.value }
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Interrupt") continue
    const thrown = reason._tag === "Fail" ? reason.error : reason.defect
    return isToolFailure(thrown) ? failed(thrown.code, describeThrown(thrown)) : thrownOutcome(thrown)
  }
  return failed("internal", "the tool was interrupted")
}

/**
 * A tool as the client runs it: each call on a fiber of its own.
 *
 * @internal
 */
export const declared = <R>(
  tool: Tool<R>,
  fork: (effect: Effect.Effect<unknown, unknown, R>) => Fiber.Fiber<unknown, unknown>
): Effect.Effect<DeclaredTool, ToolsRefused> => {
  const { description, name, outputSchema, parametersSchema, readOnly } = tool
  return Effect.fromResult(checkTool({ name, description, parametersSchema, outputSchema, readOnly })).pipe(
    Effect.map((wire) => ({
      ...wire,
      start: (args, call, done) => {
        const fiber = fork(Effect.suspend(() => tool.handle(args, call)))
        fiber.addObserver((exit) => done(outcomeOf(exit)))
        return { abort: () => fiber.interruptUnsafe() }
      }
    }))
  )
}
