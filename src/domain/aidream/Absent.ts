/**
 * Optional fields of the contract.
 *
 * On this wire an absent key and `null` mean the same for every optional field
 * (part 2.0), so both are accepted wherever a field is optional.
 */
import { Effect, Option, Predicate, Schema, SchemaTransformation } from "effect"

/** An optional field without a default: the key may be absent or `null`. */
export const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/**
 * An optional field with a default: absent and `null` decode to `value()`, a
 * constructor may leave the key out, and encoding always writes it.
 */
export const fallback = <S extends Schema.Constraint & Schema.WithoutConstructorDefault>(
  schema: S,
  value: () => S["Type"] & S["~type.make.in"]
) => {
  const decoded = Schema.optionalKey(Schema.NullOr(schema)).pipe(
    Schema.decodeTo(
      Schema.toType(schema),
      SchemaTransformation.transformOptional<S["Type"], S["Type"] | null>({
        decode: (field) => Option.some(Option.getOrElse(Option.filter(field, Predicate.isNotNull), value)),
        encode: (field) => field
      })
    )
  )
  return Schema.withConstructorDefault<typeof decoded>(Effect.sync(value))(decoded)
}

/** A JSON object whose keys are not this contract's business. */
export const JsonObject = Schema.Record(Schema.String, Schema.Unknown)
export type JsonObject = typeof JsonObject.Type

/** Whether a parsed JSON value is an object (not an array, not `null`). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
