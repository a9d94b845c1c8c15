import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { buildClientKeyClipboardText, ClientKey, generateClientKey } from "../../../src/domain/bridge/ClientKey.ts"

describe("ClientKey", () => {
  it("generates 64 hex characters, never the same twice", () => {
    const keys = Array.from({ length: 100 }, generateClientKey)
    assert.isTrue(keys.every(Schema.is(ClientKey)))
    assert.strictEqual(new Set(keys).size, keys.length)
  })

  it("is refused in any other form, and the refusal does not quote it", () => {
    for (const wrong of ["", "x", "A".repeat(64), "é".repeat(64), "a".repeat(65)]) {
      const refused = Schema.decodeUnknownResult(ClientKey)(wrong)
      assert.strictEqual(refused._tag, "Failure")
      if (wrong !== "") assert.notInclude(String(refused), wrong)
    }
  })

  it("is pasted as three lines", () => {
    assert.strictEqual(
      buildClientKeyClipboardText({ namespace: "shop", key: "k", appName: "Shop" }),
      "[Shop · DSH 前端工具桥接入]\nnamespace: shop\nkey: k"
    )
    assert.strictEqual(
      buildClientKeyClipboardText({ namespace: "shop", key: "k" }),
      "[DSH 前端工具桥接入]\nnamespace: shop\nkey: k"
    )
  })
})
