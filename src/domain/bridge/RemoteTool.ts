/**
 * A tool as an application registers it (bridge protocol, part a.1), with the
 * bounds that keep one application's texts from filling every model request.
 */
import { Schema } from "effect"
import { RawName, TOOL_NAME_PATTERN } from "./ToolName.ts"

/** In UTF-16 units, which JSON text is counted in before it is encoded. */
export const MAX_DESCRIPTION_LENGTH = 16 * 1024
export const MAX_SCHEMA_LENGTH = 64 * 1024

/** A JSON object, kept as it was parsed: a copy could lose or run into a `__proto__` key. */
export interface JsonObject {
  readonly [key: string]: unknown
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// One text whether the field is missing or wrong.
const saying = (message: string) => ({ message, messageMissingKey: message })

const lengthOfJson = (value: JsonObject): number => {
  try {
    return JSON.stringify(value).length
  } catch {
    // Nested deeper than the engine's stack: no host could send it to a model.
    return Number.POSITIVE_INFINITY
  }
}

const jsonSchema = (field: string) =>
  Schema.declare(isJsonObject)
    .annotate(saying(`${field} must be a JSON object`))
    .check(
      Schema.makeFilter((schema) =>
        lengthOfJson(schema) <= MAX_SCHEMA_LENGTH
          ? true
          : `${field} must be at most ${MAX_SCHEMA_LENGTH} characters long`
      )
    )
    .pipe(Schema.annotateKey(saying(`${field} must be a JSON object`)))

/** Messages follow `tool "name" …`, but for those of the name and of the tool as a whole. */
export const RemoteTool = Schema.Struct({
  name: RawName.pipe(Schema.annotateKey({ messageMissingKey: `must match ${TOOL_NAME_PATTERN.source}` })),
  description: Schema.String.annotate(saying("description must be a string"))
    .check(
      Schema.isMaxLength(MAX_DESCRIPTION_LENGTH, {
        message: `description must be at most ${MAX_DESCRIPTION_LENGTH} characters long`
      })
    )
    .pipe(Schema.annotateKey(saying("description must be a string"))),
  /** Absent means that the tool writes, and that a person is asked for every call. */
  readOnly: Schema.optionalKey(Schema.Boolean.annotate(saying("readOnly must be a boolean when present"))),
  parametersSchema: jsonSchema("parametersSchema"),
  /** Absent means any JSON value. */
  outputSchema: Schema.optionalKey(jsonSchema("outputSchema"))
}).annotate(saying("each registered tool must be an object"))
export type RemoteTool = typeof RemoteTool.Type

/**
 * A schema of arguments with an object at its root: `{}` says no more than that, and
 * any other root type is none that a model's arguments can have.
 */
export const withObjectRoot = (schema: JsonObject): JsonObject | undefined => {
  if (schema.type === "object") return schema
  return Object.keys(schema).length === 0 ? { type: "object" } : undefined
}
