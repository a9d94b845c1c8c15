import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { describeThrown, encodeAnswer, failed } from "../../src/client/answer.ts"
import { CallResultFrame } from "../../src/domain/bridge/Frame.ts"

const LIMIT = 1024 * 1024

const answer = (result: unknown, limit = LIMIT) => JSON.parse(encodeAnswer("c1", { ok: true, result }, limit))
const faultOf = (result: unknown): string => answer(result).error.message.replace("the result is not JSON: ", "")

const cycle = () => {
  const node: Record<string, unknown> = { name: "a" }
  node.list = [{ node }]
  return node
}

class Element {}

describe("results", () => {
  it.prop("every JSON value goes as it is", [Schema.Json], ([result]) => {
    assert.deepStrictEqual(answer(result).result, JSON.parse(JSON.stringify(result)))
  })

  it("nothing is null, and what has a JSON form of its own uses it", () => {
    assert.isNull(answer(undefined).result)
    assert.isNull(answer(null).result)
    assert.strictEqual(answer(new Date(0)).result, "1970-01-01T00:00:00.000Z")
    assert.deepStrictEqual(answer({ a: undefined, f: () => 1, list: [undefined] }).result, { list: [null] })
    assert.deepStrictEqual(answer({ empty: {}, none: null }).result, { empty: {}, none: null })
    assert.deepStrictEqual(answer(Object.create(null)).result, {})
  })

  it("what JSON refuses or would lose is named with its place", () => {
    assert.strictEqual(faultOf({ items: [{ price: 1n }] }), "result.items[0].price is a BigInt")
    assert.strictEqual(faultOf(cycle()), "result.list[0].node refers back to an object around it")
    assert.strictEqual(faultOf({ "a b": Number.NaN }), 'result["a b"] is NaN')
    assert.strictEqual(faultOf(Number.POSITIVE_INFINITY), "result is Infinity")
    assert.strictEqual(faultOf({ tags: new Set([1]) }), "result.tags is a Set, which has no JSON form")
    assert.strictEqual(faultOf([new Map()]), "result[0] is a Map, which has no JSON form")
    assert.strictEqual(faultOf(new Element()), "result is a Element, which has no JSON form")
    assert.strictEqual(faultOf({ later: Promise.resolve() }), "result.later is a Promise, which has no JSON form")
    assert.strictEqual(
      faultOf(() => 1),
      "result is a function"
    )
    assert.strictEqual(faultOf([Symbol("x")]), "result[0] is a symbol")
  })

  it("the same object twice is no cycle", () => {
    const shared = { a: null }
    assert.deepStrictEqual(answer({ one: shared, two: shared }).result, { one: { a: null }, two: { a: null } })
  })

  it("a getter that throws is told in its words", () => {
    const result = {
      get broken() {
        throw new Error("no such row")
      }
    }
    assert.strictEqual(faultOf(result), "no such row")
  })

  it("one byte over the limit is refused with both sizes, counted in UTF-8", () => {
    const text = "ü".repeat(200)
    const size = Buffer.byteLength(encodeAnswer("c1", { ok: true, result: text }, LIMIT))
    assert.strictEqual(answer(text, size).result, text)
    assert.deepStrictEqual(answer(text, size - 1).error, {
      code: "internal",
      message: `the result is too large: ${size} bytes, and the bridge reads ${size - 1}`
    })
  })
})

describe("failures", () => {
  it("anything that can be thrown reads as something", () => {
    assert.strictEqual(describeThrown(new Error("no stock")), "no stock")
    assert.strictEqual(describeThrown(new TypeError("")), "TypeError")
    assert.strictEqual(describeThrown("plain"), "plain")
    assert.strictEqual(describeThrown(undefined), "the tool threw undefined")
    assert.strictEqual(describeThrown(null), "the tool threw null")
    assert.strictEqual(describeThrown(5n), "the tool threw 5n")
    assert.strictEqual(describeThrown(Symbol("s")), "the tool threw Symbol(s)")
    assert.strictEqual(describeThrown(cycle()), "the tool threw a value of type Object")
    assert.strictEqual(describeThrown(new Element()), "the tool threw a value of type Element")
    assert.strictEqual(describeThrown({ status: 404 }), '{"status":404}')
    assert.strictEqual(describeThrown(Object.create(null)), "the tool threw a value of type object")
  })

  it("a value that fights back is still answered", () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("hands off")
        },
        getPrototypeOf: () => {
          throw new Error("hands off")
        }
      }
    )
    assert.strictEqual(describeThrown(hostile), "the tool threw a value that cannot be read")
  })

  it("a message takes no more than 4 KiB of a model's context", () => {
    const { error } = JSON.parse(encodeAnswer("c1", failed("internal", "x".repeat(5000)), LIMIT))
    assert.strictEqual(error.message.length, 4096)
  })

  it.prop("every answer is a frame", [Schema.String, Schema.String, Schema.String], ([id, code, message]) => {
    const decode = Schema.decodeUnknownSync(CallResultFrame)
    const callId = `c${id}`
    assert.deepStrictEqual(decode(JSON.parse(encodeAnswer(callId, failed(code, message), LIMIT))), {
      type: "callResult",
      callId,
      ok: false,
      error: { code, message }
    })
  })
})
