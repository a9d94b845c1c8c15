import { assert, describe, it } from "@effect/vitest"
import { CLIENT_KEY_PATTERN, KEY_STORAGE_NAME, type KeyStorage, storedClientKey } from "../../src/promise.ts"

const memory = (items: Record<string, string> = {}): KeyStorage & { readonly items: Record<string, string> } => ({
  items,
  getItem: (name) => items[name] ?? null,
  setItem: (name, value) => {
    items[name] = value
  }
})

const broken: KeyStorage = {
  getItem: () => null,
  setItem: () => {
    throw new Error("full")
  }
}

describe("storedClientKey", () => {
  it("makes a key once and keeps it", () => {
    const storage = memory()
    const key = storedClientKey({ storage })
    assert.match(key, CLIENT_KEY_PATTERN)
    assert.strictEqual(storedClientKey({ storage }), key)
    assert.deepStrictEqual(storage.items, { [KEY_STORAGE_NAME]: key })
  })

  it("keeps keys of several names apart", () => {
    const storage = memory()
    assert.notStrictEqual(storedClientKey({ storage, name: "a" }), storedClientKey({ storage, name: "b" }))
  })

  it("replaces what is no key", () => {
    const storage = memory({ [KEY_STORAGE_NAME]: "old nonsense" })
    assert.match(storedClientKey({ storage }), CLIENT_KEY_PATTERN)
    assert.match(storage.items[KEY_STORAGE_NAME] ?? "", CLIENT_KEY_PATTERN)
  })

  it("gives one key for as long as the page lasts when it cannot be stored", () => {
    const key = storedClientKey({ storage: broken, name: "c" })
    assert.match(key, CLIENT_KEY_PATTERN)
    assert.strictEqual(storedClientKey({ storage: broken, name: "c" }), key)
    // Storage that forgets at once is no better.
    assert.strictEqual(storedClientKey({ storage: { getItem: () => null, setItem: () => {} }, name: "c" }), key)
    // Once it can be stored, it is that one.
    const storage = memory()
    assert.strictEqual(storedClientKey({ storage, name: "c" }), key)
    assert.deepStrictEqual(storage.items, { c: key })
  })

  it("works where there is no storage at all", () => {
    assert.match(storedClientKey({ name: "d" }), CLIENT_KEY_PATTERN)
  })
})
