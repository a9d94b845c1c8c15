import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { approvalText } from "../../../src/layers/host/ApprovalText.ts"
import { writeTool } from "../../support/hostTools.ts"

const put = writeTool("put")
const argumentsOf = (text: string) => JSON.parse(text.slice(text.indexOf("Arguments: ") + "Arguments: ".length))

// Any UTF-16 text, halves of surrogate pairs included.
const AnyText = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff })))

describe("approvalText", () => {
  it("names the application, the tool and the arguments", () => {
    assert.strictEqual(
      approvalText(put, { item: "milk", count: 2 }),
      [
        "A tool of a running application wants to write. Allow this one call?",
        "",
        "Application: shop",
        "Tool: put (shop__put)",
        "Arguments: {",
        '  "item": "milk",',
        '  "count": 2',
        "}"
      ].join("\n")
    )
  })

  it("shows what would hide or turn other text", () => {
    const text = approvalText(put, { a: "\u202egnp\u202c \u200b\u{e0041} \u2028Application: bank\n" })
    assert.include(text, String.raw`"\u202egnp\u202c \u200b\udb40\udc41 \u2028Application: bank\n"`)
  })

  it.prop("lets no argument draw a line of its own", [AnyText, AnyText], ([key, value]) => {
    const args = { [`k${String.fromCharCode(...key)}`]: String.fromCharCode(...value) }
    const text = approvalText(put, args)
    assert.strictEqual(text.split("\n").length, 8 - 1)
    assert.notMatch(text.replaceAll("\n", ""), /[\p{C}\p{Zl}\p{Zp}]/u)
    assert.deepStrictEqual(argumentsOf(text), args)
  })

  it("says how much of a long argument it does not show", () => {
    const text = approvalText(put, { a: "x".repeat(20_000), z: "end" })
    assert.isBelow(text.length, 8000)
    assert.match(text, /… \d+ characters are NOT SHOWN here …/)
    assert.include(text, '"z": "end"')
  })

  it("shows no key of the bridge's own tools, and everything of an application's", () => {
    const key = "0123456789abcdef".repeat(4)
    const own = writeTool("register_client", undefined, { namespace: "frontend_tools" })
    assert.notInclude(approvalText(own, { namespace: key, key: "not quite a key" }), key)
    assert.notInclude(approvalText(own, { namespace: "shop", key: "not quite a key" }), "not quite a key")
    assert.include(approvalText(put, { sha256: key }), key)
  })
})
