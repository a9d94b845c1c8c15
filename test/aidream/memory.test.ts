import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { openRunBody } from "../../src/layers/aidream/RunBody.ts"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

const heap = () => {
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const MB = 1024 * 1024

describe("reading a long stream", () => {
  it.live("keeps nothing of what was read: bench/aidream-decode.ts does it with a gigabyte", () =>
    Effect.gen(function* () {
      const tool = {
        event: "tool_event",
        data: { event: "tool_progress", call_id: "c", tool_name: "t", data: { n: 1 } }
      }
      const lines = [`{"e":"c","t":"one longer piece of text"}`, JSON.stringify(tool), `{"event":"novel","data":[1,2]}`]
      const piece = new TextEncoder().encode(`${Array.from({ length: 200 }, () => lines.join("\n")).join("\n")}\n`)
      const pieces = Math.ceil((24 * MB) / piece.length)
      const body = Stream.range(1, pieces).pipe(
        Stream.rechunk(1),
        Stream.map(() => piece)
      )
      const run = yield* openRunBody(body, { stallTimeout: "1 hour", terminalGrace: "1 hour" })
      const samples: Array<number> = []
      let read = 0
      yield* Stream.runForEachArray(Stream.fromQueue(run.items), (items) =>
        Effect.sync(() => {
          const before = Math.floor(read / (pieces * 150))
          read += items.length
          if (Math.floor(read / (pieces * 150)) !== before) samples.push(heap())
        })
      )
      assert.strictEqual(read, pieces * 600)
      assert.isAtLeast(samples.length, 3)
      const [first = 0, ...later] = samples
      assert.isBelow(Math.max(...later) - first, 2 * MB)
    })
  )
})
