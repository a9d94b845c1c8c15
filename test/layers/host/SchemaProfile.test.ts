import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { jsonSchemaProfile } from "../../../src/layers/host/SchemaProfile.ts"

const { mismatches, violations } = jsonSchemaProfile

const order = {
  type: "object",
  properties: {
    items: { type: "array", items: { type: "object", properties: { n: { $ref: "#/$defs/amount" } }, required: ["n"] } },
    note: { type: "string", pattern: "^(a+)+$" },
    pattern: { type: "string" }
  },
  required: ["items"],
  additionalProperties: false,
  $defs: { amount: { type: "integer", minimum: 1 } }
}

describe("jsonSchemaProfile", () => {
  it("takes any keyword and references inside the schema", () => {
    assert.deepStrictEqual(violations(order), [])
    assert.deepStrictEqual(mismatches(order, { items: [{ n: 1 }] }, "arguments"), [])
  })

  it("says where a value does not fit", () => {
    const [wrong] = mismatches(order, { items: [{ n: 1 }, { n: 0 }] }, "arguments")
    assert.match(String(wrong), /^arguments\/?\.?items\.1\.n: /)
    assert.match(String(mismatches(order, {}, "arguments")[0]), /^arguments: .*items/)
    assert.isNotEmpty(mismatches(order, { items: [], more: 1 }, "arguments"))
    assert.isNotEmpty(mismatches(order, null, "arguments"))
  })

  it("does not run an application's regular expressions, which could run for ever", () => {
    assert.deepStrictEqual(mismatches(order, { items: [], note: `${"a".repeat(50_000)}!` }, "arguments"), [])
    // A property of that name is a property.
    assert.isNotEmpty(mismatches(order, { items: [], pattern: 5 }, "arguments"))
  })

  it("fetches nothing, and refuses a reference that leads nowhere when it is needed", () => {
    const schema = { type: "object", properties: { a: { $ref: "https://example.com/schema.json" } } }
    assert.include(mismatches(schema, { a: 1 }, "arguments")[0], "cannot be checked")
  })

  it("refuses a schema that is nested too deeply to be used", () => {
    let deep: Record<string, unknown> = { type: "string" }
    for (let i = 0; i < 10_000; i++) deep = { type: "array", items: deep }
    assert.isNotEmpty(violations({ type: "object", properties: { deep } }))
  })

  it.prop(
    "never throws, whatever the schema and the value are",
    [Schema.Record(Schema.String, Schema.Json), Schema.Json],
    ([schema, value]) => {
      violations(schema)
      mismatches(schema, value, "arguments")
    }
  )
})
