import { Effect, Schema } from "effect"
import { ApplicationError } from "../../domain/bridge/BridgeError.ts"
import type { JsonObject, RemoteTool } from "../../domain/bridge/RemoteTool.ts"
import { RawName } from "../../domain/bridge/ToolName.ts"
import { jsonSchemaOf } from "../internal/jsonSchemaOf.ts"

/** A tool of a test's application: what it registers, and the effect behind it. */
export interface TestTool<R = never> {
  readonly remote: RemoteTool
  /**
   * Runs for each call. A failure is answered with code `internal` and its message; an
   * `ApplicationError` with its own code and detail.
   */
  readonly run: (args: unknown) => Effect.Effect<unknown, unknown, R>
}

interface Common {
  readonly name: string
  readonly description?: string | undefined
  readonly outputSchema?: JsonObject | undefined
}

/** A tool whose arguments are anything that fits a JSON Schema; any object, if there is none. */
export interface RawToolOptions<R> extends Common {
  readonly parametersSchema?: JsonObject | undefined
  readonly run: (args: unknown) => Effect.Effect<unknown, unknown, R>
}

/** A tool whose arguments are decoded first. Those that do not fit are answered with `invalid_args`. */
export interface TypedToolOptions<A, R> extends Common {
  readonly parameters: Schema.ConstraintDecoder<A>
  readonly run: (args: A) => Effect.Effect<unknown, unknown, R>
}

const typed = <A, R>({ parameters, run }: TypedToolOptions<A, R>): TestTool<R>["run"] => {
  const decode = Schema.decodeUnknownEffect(parameters)
  return (args) =>
    decode(args).pipe(
      Effect.mapError(({ message }) => new ApplicationError({ code: "invalid_args", detail: message })),
      Effect.flatMap(run)
    )
}

const make = <A, R>(options: RawToolOptions<R> | TypedToolOptions<A, R>, readOnly: boolean): TestTool<R> => {
  const { description, name, outputSchema } = options
  const isTyped = "parameters" in options
  return {
    remote: {
      name: RawName.make(name),
      description: description ?? `The tool ${name}.`,
      ...(readOnly ? { readOnly } : {}),
      parametersSchema: isTyped ? jsonSchemaOf(options.parameters) : (options.parametersSchema ?? { type: "object" }),
      ...(outputSchema === undefined ? {} : { outputSchema })
    },
    run: isTyped ? typed(options) : options.run
  }
}

interface MakeTool {
  <A, R = never>(options: TypedToolOptions<A, R>): TestTool<R>
  <R = never>(options: RawToolOptions<R>): TestTool<R>
}

/** A tool that changes nothing. */
export const read: MakeTool = <A, R>(options: RawToolOptions<R> | TypedToolOptions<A, R>) => make(options, true)

/** A tool that writes, and asks. */
export const write: MakeTool = <A, R>(options: RawToolOptions<R> | TypedToolOptions<A, R>) => make(options, false)
