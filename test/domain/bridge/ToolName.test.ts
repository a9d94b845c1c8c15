import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { collidingPrefixes, Namespace, PublicName, publicName, RawName } from "../../../src/domain/bridge/ToolName.ts"

const n = (length: number) => "n".repeat(length)
const t = (length: number) => "t".repeat(length)
const x = (length: number) => "x".repeat(length)
const a = (length: number) => "a".repeat(length)

// The table of the protocol's part b.
const names: ReadonlyArray<readonly [namespace: string, raw: string, expected: string]> = [
  ["eatc", "submit_order", "eatc__submit_order"],
  ["a-b_C9", "x-Y_0", "a-b_C9__x-Y_0"],
  ["shop", x(58), `shop__${x(58)}`],
  ["shop", x(59), `shop__${x(45)}_2b11a8738f69`],
  [n(32), t(30), `${n(32)}__${t(30)}`],
  [n(32), t(31), `${n(32)}__${t(17)}_12a430452212`],
  [n(32), t(64), `${n(32)}__${t(17)}_9cb3af1cfea9`],
  ["n", t(62), `n__${t(48)}_c7f6d1bbc725`],
  ["shop", `${a(60)}1`, `shop__${a(45)}_5844a7097bfc`],
  ["shop", `${a(60)}2`, `shop__${a(45)}_9d86d8bd4dee`],
  ["demo", "a b", "demo__a_b_f90c4ccaa098"],
  ["demo", "读取", "demo_____07d294a1c54c"],
  ["demo", x(64), `demo__${x(45)}_cf1b457ca50d`]
]

const anyName = (pattern: RegExp) => Schema.String.check(Schema.isPattern(pattern))

describe("ToolName", () => {
  it.each(names)("names %s / %s", (namespace, raw, expected) => {
    assert.strictEqual(publicName(namespace, raw), expected)
  })

  it.prop(
    "gives every tool a legal name that no other tool of the namespace has",
    [Namespace, RawName, RawName],
    ([namespace, one, other]) => {
      const name = publicName(namespace, one)
      assert.isTrue(Schema.is(PublicName)(name))
      if (one !== other) assert.notStrictEqual(name, publicName(namespace, other))
    }
  )

  it.prop(
    "gives tools of two namespaces different names unless the one is a prefix of the other",
    [anyName(/^[ab_]{1,6}$/), anyName(/^[ab_]{1,6}$/), anyName(/^[ab_]{1,6}$/), anyName(/^[ab_]{1,6}$/)],
    ([one, oneTool, other, otherTool]) => {
      if (one === other || publicName(one, oneTool) !== publicName(other, otherTool)) return
      assert.isTrue(collidingPrefixes(one).includes(other) || collidingPrefixes(other).includes(one))
    },
    { arbitrary: { runs: 5000 } }
  )

  it("knows the namespaces that cannot exist beside one", () => {
    assert.deepStrictEqual(collidingPrefixes("a__b__c"), ["a", "a__b"])
    assert.deepStrictEqual(collidingPrefixes("a___b"), ["a", "a_"])
    assert.deepStrictEqual(collidingPrefixes("a_b"), [])
    assert.deepStrictEqual(collidingPrefixes("a_"), ["a"])
    assert.strictEqual(publicName("a_", "b"), publicName("a", "_b"))
  })
})
