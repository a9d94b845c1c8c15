/**
 * What JSON Schema a host accepts, and how values are checked against it (bridge
 * protocol, part d).
 */
import { type Schema as JsonSchema, Validator } from "@cfworker/json-schema"
import { isJsonObject, type JsonObject } from "../../domain/bridge/RemoteTool.ts"

export interface SchemaProfile {
  /** What the host does not support in a schema, each with its path and keyword. Empty when it takes it. */
  readonly violations: (schema: JsonObject) => ReadonlyArray<string>
  /**
   * What is wrong with a value, each with its path below `subject`. Empty when it
   * fits. The schema must be one that the profile accepts.
   */
  readonly mismatches: (schema: JsonObject, value: unknown, subject: string) => ReadonlyArray<string>
}

/**
 * The same schema without its regular expressions. A pattern comes from one
 * application and a hostile one takes for ever to match, which would hold up
 * everybody; the application checks its own patterns.
 */
const withoutPatterns = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutPatterns)
  if (!isJsonObject(schema)) return schema
  const entries: Array<[string, unknown]> = []
  for (const [key, value] of Object.entries(schema)) {
    // A property may itself be called "pattern": its value is a schema, not a text.
    if ((key === "pattern" && typeof value === "string") || key === "patternProperties" || key === "format") continue
    entries.push([key, withoutPatterns(value)])
  }
  return Object.fromEntries(entries)
}

const isSchema = (value: unknown): value is JsonSchema => isJsonObject(value)

const compile = (schema: JsonObject): Validator => {
  const plain = withoutPatterns(schema)
  return new Validator(isSchema(plain) ? plain : {}, "2020-12", true)
}

const cache = new WeakMap<JsonObject, Validator>()

const validatorOf = (schema: JsonObject): Validator => {
  let validator = cache.get(schema)
  if (validator === undefined) {
    validator = compile(schema)
    cache.set(schema, validator)
  }
  return validator
}

/**
 * JSON Schema 2020-12 as hosts without a profile of their own take it: any keyword,
 * references inside the schema only. Regular expressions and formats are not
 * enforced.
 */
export const jsonSchemaProfile: SchemaProfile = {
  violations: (schema) => {
    try {
      compile(schema)
      return []
    } catch (error) {
      return [`schema cannot be used: ${error instanceof Error ? error.message : String(error)}`]
    }
  },
  mismatches: (schema, value, subject) => {
    try {
      const { valid, errors } = validatorOf(schema).validate(value)
      if (valid) return []
      // The validator reports every keyword on the way down; the deepest ones say what is wrong.
      const depth = Math.max(...errors.map((error) => error.instanceLocation.length))
      return errors
        .filter((error) => error.instanceLocation.length === depth)
        .map((error) => `${subject}${error.instanceLocation.slice(1).replaceAll("/", ".")}: ${error.error}`)
    } catch (error) {
      return [
        `${subject}: cannot be checked against its schema: ${error instanceof Error ? error.message : String(error)}`
      ]
    }
  }
}
