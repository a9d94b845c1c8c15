import { Validator } from "@cfworker/json-schema"
import { assertSupportedJsonSchema } from "@deepseek-ai/dsh-tools"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type HostSchema, toHostSchema } from "../../src/client/HostSchema.ts"
import * as Tool from "../../src/client/Tool.ts"

const keywords = ({ dropped }: HostSchema) => dropped.map(({ keyword, path }) => `${path}: ${keyword}`)

interface Category {
  readonly name: string
  readonly children: ReadonlyArray<Category>
}
const Category: Schema.Codec<Category> = Schema.Struct({
  name: Schema.String,
  children: Schema.Array(Schema.suspend((): Schema.Codec<Category> => Category))
}).annotate({ identifier: "Category" })

interface Node {
  readonly [keyword: string]: unknown
}

const Name = Schema.Literals(["a", "b"])
const Scalar = Schema.Union([Name, Schema.Literals([0, 1, 1.5, -2]), Schema.Boolean, Schema.Null])
const Type = Schema.Literals(["object", "array", "string", "integer", "number", "boolean", "null"])
const Sub = Schema.suspend((): Schema.Codec<Node> => JsonSchema)
const SubOrBoolean = Schema.Union([Sub, Sub, Schema.Boolean])

/** JSON Schemas that say something about small values: within and beyond the subset. */
const JsonSchema: Schema.Codec<Node> = Schema.Struct({
  type: Schema.optionalKey(Schema.Union([Type, Type, Schema.Array(Type).check(Schema.isMinLength(1))])),
  properties: Schema.optionalKey(Schema.Record(Name, SubOrBoolean)),
  required: Schema.optionalKey(Schema.Array(Schema.Literals(["a", "b", "z"]))),
  additionalProperties: Schema.optionalKey(SubOrBoolean),
  items: Schema.optionalKey(SubOrBoolean),
  enum: Schema.optionalKey(Schema.Array(Scalar).check(Schema.isMinLength(1))),
  const: Schema.optionalKey(Scalar),
  anyOf: Schema.optionalKey(Schema.Array(SubOrBoolean).check(Schema.isMinLength(1))),
  oneOf: Schema.optionalKey(Schema.Array(SubOrBoolean).check(Schema.isMinLength(1))),
  allOf: Schema.optionalKey(Schema.Array(SubOrBoolean).check(Schema.isMinLength(1))),
  not: Schema.optionalKey(Sub),
  $ref: Schema.optionalKey(Schema.Literals(["#/$defs/one", "#/$defs/two", "#/nowhere"])),
  minLength: Schema.optionalKey(Schema.Literals([0, 2])),
  minimum: Schema.optionalKey(Schema.Literals([0, 1])),
  description: Schema.optionalKey(Name)
})

const Value: Schema.Codec<unknown> = Schema.Union([
  Scalar,
  Schema.Array(Scalar),
  Schema.Struct({
    a: Schema.optionalKey(Schema.suspend(() => Value)),
    b: Schema.optionalKey(Scalar),
    z: Schema.optionalKey(Scalar)
  })
])

const accepts = (schema: object, value: unknown): boolean => {
  try {
    return new Validator(schema, "2020-12").validate(value).valid
  } catch {
    // A reference to nowhere, or one that never ends: no host would take it, nor does it say anything.
    return false
  }
}

describe("schemas for hosts", () => {
  it.prop(
    "whatever comes in, what comes out is in the subset of the host",
    [JsonSchema, JsonSchema, JsonSchema],
    ([root, one, two]) => {
      assertSupportedJsonSchema(toHostSchema({ ...root, $defs: { one, two } }).schema)
    }
  )

  it.prop(
    "what the schema accepts, the host's accepts too",
    [JsonSchema, JsonSchema, JsonSchema, Schema.Array(Value).check(Schema.isMinLength(5))],
    ([root, one, two, values]) => {
      const schema = { ...root, $defs: { one, two } }
      const { schema: wider } = toHostSchema(schema)
      for (const value of values) {
        if (accepts(schema, value)) assert.isTrue(accepts(wider, value), JSON.stringify({ schema, wider, value }))
      }
    },
    { arbitrary: { runs: 500 } }
  )

  it("what a reference and its neighbours say holds together", () => {
    const { dropped, schema } = toHostSchema({
      $ref: "#/$defs/Named",
      properties: { age: { type: "integer" } },
      allOf: [{ $ref: "#/$defs/Tagged" }, { $ref: "#/$defs/Named" }],
      $defs: {
        Named: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        Tagged: { properties: { tags: { type: "array" }, constructor: {} }, required: ["tags"] }
      }
    })
    assert.deepStrictEqual(schema, {
      type: "object",
      properties: { name: { type: "string" }, tags: { type: "array" }, constructor: {}, age: { type: "integer" } },
      required: ["name", "tags"]
    })
    assert.deepStrictEqual(dropped, [])
  })

  it("what stands beside a union that cannot be said stays", () => {
    const result = toHostSchema({
      type: "object",
      properties: { a: {}, b: {} },
      anyOf: [{ required: ["a"] }, { required: ["b"] }]
    })
    assert.deepStrictEqual(result.schema, { type: "object", properties: { a: {}, b: {} } })
    assert.deepStrictEqual(keywords(result), [": anyOf"])
  })

  it("the subset itself is left alone", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string", enum: ["x"] }, b: { oneOf: [{ type: "string" }, { type: "null" }] }, c: {} },
      required: ["a"],
      additionalProperties: false
    }
    assert.deepStrictEqual(toHostSchema(schema), { schema, dropped: [] })
  })

  it("bounds move into the description, and are listed", () => {
    const result = toHostSchema({
      type: "object",
      properties: { n: { type: "number", minimum: 0, description: "How many." } }
    })
    assert.deepStrictEqual(result.schema, {
      type: "object",
      properties: { n: { type: "number", description: "How many. (minimum 0)" } }
    })
    assert.deepStrictEqual(keywords(result), ["properties.n: minimum"])
  })

  it("a nullable type and a disjoint union become oneOf; an overlapping one any value", () => {
    assert.deepStrictEqual(toHostSchema({ type: ["string", "null"], description: "d" }).schema, {
      description: "d",
      oneOf: [{ type: "string" }, { type: "null" }]
    })
    const tagged = (kind: string) => ({
      type: "object",
      properties: { kind: { type: "string", enum: [kind] } },
      required: ["kind"]
    })
    assert.deepStrictEqual(toHostSchema({ anyOf: [tagged("a"), tagged("b")] }).schema, {
      oneOf: [tagged("a"), tagged("b")]
    })
    const overlapping = toHostSchema({ anyOf: [{ type: "integer" }, { type: "number" }] })
    assert.deepStrictEqual(overlapping.schema, {})
    assert.deepStrictEqual(keywords(overlapping), [": anyOf"])
  })

  it("local references are put in place; one that leads back to itself ends there", () => {
    const inlined = toHostSchema({
      $ref: "#/$defs/P",
      $defs: { P: { type: "object", properties: { x: { $ref: "#/$defs/S" } } }, S: { type: "string" } }
    })
    assert.deepStrictEqual(inlined, { schema: { type: "object", properties: { x: { type: "string" } } }, dropped: [] })
    const tool = Tool.make({ name: "t", description: "", parameters: Category, handler: () => Effect.void })
    assertSupportedJsonSchema(tool.parametersSchema)
    assert.deepStrictEqual(tool.dropped, [{ path: "properties.children.items", keyword: "$ref" }])
  })

  it("constants without a type get theirs", () => {
    assert.deepStrictEqual(toHostSchema({ enum: ["a", null, "b"] }).schema, {
      oneOf: [{ type: "string", enum: ["a", "b"] }, { type: "null" }]
    })
    assert.deepStrictEqual(toHostSchema({ const: true }).schema, { type: "boolean", enum: [true] })
  })

  it("allOf is put together", () => {
    const parts = [
      { properties: { b: { type: "string" } }, required: ["b"] },
      { type: "object", properties: { a: {} }, required: ["a"] }
    ]
    assert.deepStrictEqual(toHostSchema({ allOf: parts }).schema, {
      type: "object",
      properties: { b: { type: "string" }, a: {} },
      required: ["b", "a"]
    })
    const twice = toHostSchema({ allOf: [{ enum: ["a"] }, { enum: ["a", "b"] }, { enum: ["a", "b"] }] })
    assert.deepStrictEqual(twice.schema, { type: "string", enum: ["a", "b"] })
    assert.deepStrictEqual(keywords(twice), [": enum"])
    const same = { type: "object", properties: { a: { minimum: 1 } } }
    const narrowed = toHostSchema({ allOf: [same, { properties: { a: { type: "number" } } }] })
    assert.deepStrictEqual(narrowed.schema.properties, { a: { type: "number", description: "(minimum 1)" } })
  })
})
