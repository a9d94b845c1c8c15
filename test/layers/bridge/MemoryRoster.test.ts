import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import {
  BridgeConfig,
  type BridgeOptionsInput,
  ClientKey,
  MemoryRoster,
  Namespace,
  Roster
} from "../../../src/index.ts"

const key = (digit: string) => ClientKey.make(digit.repeat(64))
const name = (namespace: string) => Namespace.make(namespace)

const roster = (options: BridgeOptionsInput = {}) => MemoryRoster.layer.pipe(Layer.provide(BridgeConfig.layer(options)))

const demo = { staticClients: [{ namespace: "demo", key: "demo-key" }] }

const whose = (text: string) =>
  Roster.use(({ authenticate }) => Effect.map(authenticate(text), Option.map(String))).pipe(
    Effect.map(Option.getOrUndefined)
  )

describe("MemoryRoster", () => {
  it.effect("admits, replaces and forgets", () =>
    Effect.gen(function* () {
      const { clients, register, revoke } = yield* Roster
      const shop = name("shop")
      assert.deepStrictEqual(yield* register(shop, key("a")), { displaced: false, invalidated: [] })
      assert.deepStrictEqual(yield* register(shop, key("a")), { displaced: false, invalidated: [] })
      assert.strictEqual(yield* whose(key("a")), "shop")
      assert.deepStrictEqual(yield* register(shop, key("b")), { displaced: true, invalidated: [shop] })
      assert.deepStrictEqual([yield* whose(key("a")), yield* whose(key("b"))], [undefined, "shop"])
      assert.deepStrictEqual(yield* clients, [
        { namespace: name("demo"), isStatic: true },
        { namespace: shop, isStatic: false }
      ])
      assert.deepStrictEqual(yield* revoke(shop), { displaced: true, invalidated: [shop] })
      assert.deepStrictEqual(yield* revoke(shop), { displaced: false, invalidated: [] })
      assert.isUndefined(yield* whose(key("b")))
    }).pipe(Effect.provide(roster(demo)))
  )

  it.effect("holds to the rules of every roster", () =>
    Effect.gen(function* () {
      const { register, revoke } = yield* Roster
      yield* register(name("a__b"), key("a"))
      yield* register(name("a__c"), key("c"))
      const refusals = [
        yield* Effect.flip(register(name("demo"), key("b"))),
        yield* Effect.flip(revoke(name("demo"))),
        yield* Effect.flip(register(name("other"), key("a"))),
        yield* Effect.flip(register(name("a"), key("b")))
      ].map(({ message }) => message)
      assert.match(String(refusals[0]), /statically configured .* instead of registering$/)
      assert.match(String(refusals[1]), /statically configured .* instead of revoking$/)
      assert.match(String(refusals[2]), /already registered for another namespace/)
      assert.match(String(refusals[3]), /^namespace "a" collides with "a__[bc]"/)
      // One of two that stand in the way has gone, and then the other.
      yield* revoke(name("a__c"))
      assert.include((yield* Effect.flip(register(name("a"), key("b")))).message, 'collides with "a__b"')
      yield* revoke(name("a__b"))
      yield* register(name("a"), key("b"))
    }).pipe(Effect.provide(roster(demo)))
  )

  it.effect("does not start on static clients that collide", () =>
    Effect.gen(function* () {
      const two = [...demo.staticClients, { namespace: "demo__x", key: "other" }]
      const failed = yield* Effect.flip(Effect.scoped(Layer.build(roster({ staticClients: two }))))
      assert.include(failed.message, 'namespace "demo__x" collides with "demo"')
    })
  )
})
