import { Cause, Context, Effect, Layer, Option, Stream } from "effect"
import { AiError, Tool, type Toolkit } from "effect/ai"
import { isJsonObject, type JsonObject } from "../../domain/aidream/Absent.ts"

/** How a tool call ended. */
export interface ToolOutcome {
  readonly isError: boolean
  /** Any JSON. */
  readonly output: unknown
  /** A word for machines, on error. */
  readonly errorType: string | undefined
  /** For the model, on error. */
  readonly errorMessage: string | undefined
}

/** A tool the server runs itself. */
export interface ServerTool {
  /** As the model calls it. */
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  /** Never fails: whatever goes wrong is an outcome the model can read. */
  readonly run: (
    args: unknown,
    call: { readonly id: string; readonly onPreview: (preview: unknown) => Effect.Effect<void> }
  ) => Effect.Effect<ToolOutcome>
}

/** The tools this server runs itself, out of an `effect/ai` toolkit. */
export class ServerTools extends Context.Service<
  ServerTools,
  {
    readonly tools: ReadonlyArray<ServerTool>
  }
>()("effect-frontend-tools/layers/backend/ServerTools") {
  static readonly layerNone = Layer.succeed(ServerTools, { tools: [] })

  /** The tools of a toolkit whose handlers the context provides. */
  static readonly layer = <Tools extends Record<string, Tool.Any>>(toolkit: Toolkit.Toolkit<Tools>) =>
    Layer.effect(
      ServerTools,
      Effect.map(fromToolkit(toolkit), (tools) => ({ tools }))
    )
}

/** Turns a toolkit into server tools. Handlers find the run they serve in `CurrentRun.current`. */
export const fromToolkit = Effect.fnUntraced(function* <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
) {
  const handlers = yield* toolkit
  const services = yield* Effect.context<Tool.HandlerServices<Tools[keyof Tools]>>()
  return Object.values(handlers.tools).map(
    (tool): ServerTool => ({
      name: tool.name,
      description: Tool.getDescription(tool) ?? "",
      inputSchema: objectSchema(Tool.getJsonSchema(tool)),
      run: (args, call) =>
        isParameters<Tools>(args)
          ? handlers.handle(tool.name, args, call.id).pipe(
              Effect.flatMap((results) =>
                Stream.runFoldEffect(
                  results,
                  (): ToolOutcome => failure("no_result", "the tool ended without a result"),
                  (last, result) =>
                    result.preliminary
                      ? Effect.as(call.onPreview(result.encodedResult), last)
                      : Effect.succeed(outcomeOf(result))
                )
              ),
              Effect.catchCause((cause) => outcomeOfCause(tool.name, cause)),
              Effect.updateContext((caller: Context.Context<never>) => Context.merge(services, caller))
            )
          : Effect.succeed(failure("invalid_arguments", "the arguments are not usable"))
    })
  )
})

// `handle` decodes the parameters against the tool's own schema, so all values are fit to be handed to it.
const isParameters = <Tools extends Record<string, Tool.Any>>(
  _args: unknown
): _args is Tool.ParametersEncoded<Tools[keyof Tools]> => true

const objectSchema = (schema: unknown): JsonObject =>
  isJsonObject(schema) && schema.type === "object" ? schema : { type: "object", properties: {}, required: [] }

const success = (output: unknown): ToolOutcome => ({
  isError: false,
  output: output === undefined ? null : output,
  errorType: undefined,
  errorMessage: undefined
})

/** An outcome that says what went wrong. */
export const failure = (errorType: string, errorMessage: string, output: unknown = null): ToolOutcome => ({
  isError: true,
  output,
  errorType,
  errorMessage
})

const outcomeOf = (result: { readonly isFailure: boolean; readonly encodedResult: unknown }): ToolOutcome => {
  if (!result.isFailure) return success(result.encodedResult)
  const output = result.encodedResult
  const { error_type, message } = isJsonObject(output) ? output : {}
  return failure(
    typeof error_type === "string" ? error_type : "tool_failed",
    typeof message === "string" ? message : textOf(output),
    output
  )
}

// A defect's text may hold anything, so the model and the ledger get none of it; the log does.
const outcomeOfCause = <E>(name: string, cause: Cause.Cause<E>): Effect.Effect<ToolOutcome> => {
  if (Cause.hasInterrupts(cause)) return Effect.interrupt
  const error = Cause.findErrorOption(cause)
  if (Option.isNone(error)) {
    return Effect.as(Effect.logError(`server tool ${name} crashed`, cause), failure("tool_crashed", "the tool crashed"))
  }
  const { value } = error
  if (AiError.isAiError(value)) {
    return Effect.succeed(
      value.reason._tag === "ToolParameterValidationError"
        ? failure("invalid_arguments", value.reason.message)
        : failure("tool_failed", value.reason.message)
    )
  }
  return Effect.succeed(failure("tool_failed", value instanceof Error ? value.message : textOf(value)))
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "failed"))
