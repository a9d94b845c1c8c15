import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Deadlines from "../../../src/layers/internal/deadlines.ts"

interface Named {
  readonly name: string
}

const watch = Effect.gen(function* () {
  const expired: Array<string> = []
  const deadlines = yield* Deadlines.make((value: Named) => expired.push(value.name))
  return { ...deadlines, expired }
})

describe("deadlines", () => {
  it.effect("expires the values of one duration each at its own time", () =>
    Effect.gen(function* () {
      const { add, expired } = yield* watch
      add({ name: "a" }, 1000)
      yield* TestClock.adjust(400)
      add({ name: "b" }, 1000)
      yield* TestClock.adjust(600)
      assert.deepStrictEqual(expired, ["a"])
      yield* TestClock.adjust(400)
      assert.deepStrictEqual(expired, ["a", "b"])
    })
  )

  it.effect("leaves removed values alone, removed once or twice", () =>
    Effect.gen(function* () {
      const { add, expired, remove } = yield* watch
      const a = add({ name: "a" }, 1000)
      add({ name: "b" }, 1000)
      remove(a)
      remove(a)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(expired, ["b"])
    })
  )

  it.effect("watches an earlier deadline that comes later, and one added while another expires", () =>
    Effect.gen(function* () {
      const expired: Array<string> = []
      const deadlines = yield* Deadlines.make(({ name }: Named) => {
        expired.push(name)
        if (name === "long") deadlines.add({ name: "next" }, 500)
      })
      deadlines.add({ name: "long" }, 1000)
      yield* TestClock.adjust(1)
      deadlines.add({ name: "short" }, 10)
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(expired, ["short"])
      yield* TestClock.adjust(989)
      assert.deepStrictEqual(expired, ["short", "long"])
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(expired, ["short", "long", "next"])
    })
  )
})
