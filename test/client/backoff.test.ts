import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { delayMillis, MAX_DELAY_MILLIS, MIN_DELAY_MILLIS } from "../../src/client/backoff.ts"

const Failures = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
const Unit = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 0.999_999 }))

describe("the wait between two attempts", () => {
  it.prop("is never under a second and never over thirty", [Failures, Unit], ([failures, random]) => {
    const delay = delayMillis(failures, random)
    assert.isAtLeast(delay, MIN_DELAY_MILLIS)
    assert.isAtMost(delay, MAX_DELAY_MILLIS)
  })

  it.prop("does not shrink with the number of failures", [Failures, Unit], ([failures, random]) => {
    assert.isAtLeast(delayMillis(failures + 1, random), delayMillis(failures, random))
  })

  it("doubles, and is spread by a half at every stage, the last one too", () => {
    const shortest = [0, 1, 2, 3, 4, 5, 50].map((failures) => delayMillis(failures, 0))
    const longest = [0, 1, 2, 3, 4, 5, 50].map((failures) => delayMillis(failures, 1))
    assert.deepStrictEqual(shortest, [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000])
    assert.deepStrictEqual(longest, [1500, 3000, 6000, 12_000, 24_000, 30_000, 30_000])
  })
})
