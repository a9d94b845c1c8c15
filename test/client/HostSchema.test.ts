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

const JsonSchemas = Schema.Struct({
  type: Schema.optionalKey(
    Schema.Union([
      Schema.Literals(["object", "array", "string", "integer"]),
      Schema.Array(Schema.Literals(["null", "number"]))
    ])
  ),
  properties: Schema.optionalKey(Schema.Record(Schema.Literals(["a", "b"]), Schema.Json)),
  required: Schema.optionalKey(Schema.Array(Schema.Literals(["a", "z"]))),
  additionalProperties: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.Struct({})])),
  items: Schema.optionalKey(
    Schema.Struct({ type: Schema.Literal("string"), format: Schema.optionalKey(Schema.String) })
  ),
  enum: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, Schema.Null, Schema.Int, Schema.Boolean]))),
  const: Schema.optionalKey(Schema.Union([Schema.String, Schema.Boolean])),
  anyOf: Schema.optionalKey(
    Schema.Array(Schema.Struct({ type: Schema.Literals(["null", "string", "number", "integer", "object"]) }))
  ),
  $ref: Schema.optionalKey(Schema.Literals(["#", "#/properties/a", "#/nowhere"])),
  minLength: Schema.optionalKey(Schema.Int),
  description: Schema.optionalKey(Schema.String)
})

describe("schemas for hosts", () => {
  it.prop("whatever comes in, what comes out is in the subset of the host", [JsonSchemas], ([schema]) => {
    assertSupportedJsonSchema(toHostSchema(schema).schema)
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
  })
})
