import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  type CalledName,
  closeNames,
  isWireName,
  type Ownership,
  type Resolution,
  resolveTool,
  sameTool,
  toWireName
} from "../../../src/domain/aidream/ToolIdentity.ts"

const resolve = (called: CalledName | string, names: ReadonlyArray<string>, ownership?: Partial<Ownership>) =>
  resolveTool(typeof called === "string" ? { toolName: called } : called, {
    has: (name) => names.includes(name),
    ...ownership
  })

const local = (name: string, bundle?: string): Resolution => ({ _tag: "Local", name, bundle })

describe("ToolIdentity", () => {
  it("F-32 writes names a provider accepts", () => {
    assert.strictEqual(toWireName("ns:a.b"), "ns__a__b")
    assert.isTrue(isWireName(toWireName("matrx-extend:fill_form")))
    assert.isFalse(isWireName("matrx-extend:fill_form"))
    assert.isTrue(sameTool("ns:a__b", "ns__a__b"))
    assert.isFalse(sameTool("ns_a", "ns__a"))
  })

  it.prop("wire form is idempotent", [Schema.String], ([name]) => {
    assert.strictEqual(toWireName(toWireName(name)), toWireName(name))
  })

  it("lets the canonical name overrule the wire name", () => {
    const names = ["fill", "other"]
    assert.deepStrictEqual(resolve({ toolName: "other", canonicalName: "ns:fill" }, names), local("fill", "ns"))
    assert.deepStrictEqual(resolve({ toolName: "fill", canonicalName: "ns:gone" }, names), {
      _tag: "Unknown",
      name: "gone"
    })
    assert.deepStrictEqual(resolve({ toolName: "x", canonicalName: "ns:a:b" }, ["a:b"]), local("a:b", "ns"))
    assert.deepStrictEqual(resolve({ toolName: "x", canonicalName: "fill" }, names), local("fill"))
  })

  it("F-33 looks a name up exactly before it splits it, and splits it once", () => {
    assert.deepStrictEqual(resolve("a__b", ["a__b", "b"]), local("a__b"))
    assert.deepStrictEqual(resolve("a__b__c", ["b__c", "c"]), local("b__c", "a"))
    assert.deepStrictEqual(resolve("ns:a:b", ["a:b"]), local("a:b", "ns"))
    assert.deepStrictEqual(resolve("matrx-extend__fill", ["fill"]), local("fill", "matrx-extend"))
    assert.deepStrictEqual(resolve("forms__fill_form", ["fill_form"]), local("fill_form", "forms"))
    assert.deepStrictEqual(resolve("fill_form", ["form"]), { _tag: "Unknown", name: "fill_form" })
  })

  it("does not split before the first character", () => {
    assert.deepStrictEqual(resolve(":a", ["a"]), { _tag: "Unknown", name: ":a" })
    assert.deepStrictEqual(resolve("__a", ["a"]), { _tag: "Unknown", name: "__a" })
  })

  it("knows old names, after the prefix is gone", () => {
    assert.deepStrictEqual(
      resolve("matrx-extend__browser_click", ["click_element"]),
      local("click_element", "matrx-extend")
    )
    assert.deepStrictEqual(resolve("browser_click", ["click_element", "browser_click"]), local("browser_click"))
  })

  it("F-27 leaves the calls of other executors alone", () => {
    const names = ["run", "local_run"]
    assert.deepStrictEqual(resolve("local_run", names), { _tag: "Foreign", owner: "local_" })
    assert.deepStrictEqual(resolve({ toolName: "run", targetInstanceId: "desk" }, names), {
      _tag: "Foreign",
      owner: "desk"
    })
    assert.deepStrictEqual(resolve({ toolName: "run", canonicalName: "matrx-local:run" }, names), {
      _tag: "Foreign",
      owner: "matrx-local"
    })
    assert.deepStrictEqual(resolve({ toolName: "run", canonicalName: "matrx-user.page:run" }, names), {
      _tag: "Foreign",
      owner: "matrx-user.page"
    })
    assert.deepStrictEqual(resolve("matrx-local__run", names), { _tag: "Foreign", owner: "matrx-local" })
    assert.deepStrictEqual(resolve("mcp:srv:run", names), { _tag: "Foreign", owner: "mcp" })
  })

  it("answers for its own desktop and namespaces", () => {
    const desktop = { foreignNamespaces: ["matrx-user"], foreignPrefixes: [], instanceId: "desk" }
    assert.deepStrictEqual(resolve("local_run", ["local_run"], desktop), local("local_run"))
    assert.deepStrictEqual(
      resolve({ toolName: "x", canonicalName: "matrx-local:run", targetInstanceId: "desk" }, ["run"], desktop),
      local("run", "matrx-local")
    )
  })

  it("suggests close names, best first, at most three", () => {
    const known = ["click_element", "query_elements", "fill_form", "submit_form", "form_fill", "open_tab"]
    assert.deepStrictEqual(closeNames("forms__Fill_Form", known), ["fill_form", "form_fill", "submit_form"])
    assert.deepStrictEqual(closeNames("click", known), ["click_element"])
    assert.deepStrictEqual(closeNames("zzz", known), [])
  })
})
