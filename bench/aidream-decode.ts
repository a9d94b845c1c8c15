/**
 * `node --expose-gc bench/aidream-decode.ts`: what the reader of a run's stream costs beside
 * `JSON.parse` of the same lines, over 10 MB of mixed events in pieces of 16 KB; then its
 * memory over 1 GB, through the whole reader of a body. A number is another size in MB;
 * `json` prints the figures of the first part alone.
 */
import { Effect, Stream } from "effect"
import { makeEventDecoder } from "../src/aidream.ts"
import { openRunBody } from "../src/layers/aidream/RunBody.ts"
import { makeStream } from "./aidream-stream.ts"
import { compare } from "./harness.ts"

const MB = 1024 * 1024
const PIECE = 16 * 1024

const decoding = async () => {
  const { bytes, lines, pieces } = makeStream(10 * MB, PIECE)
  let sink = 0
  const row = await compare(
    `decode ${(bytes / MB).toFixed(0)} MB of events in pieces of 16 KB`,
    "ms",
    [
      {
        name: "reader",
        round: async () => {
          const began = performance.now()
          const decoder = makeEventDecoder()
          for (const piece of pieces) sink += decoder.push(piece).length
          sink += decoder.end().length
          return performance.now() - began
        }
      },
      {
        name: "JSON.parse",
        round: async () => {
          const began = performance.now()
          for (const line of lines) if (JSON.parse(line) !== null) sink++
          return performance.now() - began
        }
      }
    ],
    { rounds: 21, warmups: 5 }
  )
  const { reader = Number.NaN, "JSON.parse": parse = Number.NaN } = row.medians
  if (sink === 0) throw new Error("nothing was read")
  return { reader, parse, ratio: reader / parse }
}

const heap = () => {
  globalThis.gc?.()
  globalThis.gc?.()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Reads so many megabytes with one consumer; returns the heap after each tenth of them. */
const readThrough = async (megabytes: number) => {
  const { bytes, lines, pieces } = makeStream(4 * MB, PIECE)
  const repeats = Math.ceil((megabytes * MB) / bytes)
  const samples: Array<number> = []
  let events = 0
  const body = Stream.fromIterable({
    *[Symbol.iterator]() {
      for (let i = 0; i < repeats; i++) yield* pieces
    }
  }).pipe(Stream.rechunk(1))
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const run = yield* openRunBody(body, { stallTimeout: "1 hour", terminalGrace: "1 hour" })
        yield* Stream.runForEachArray(Stream.fromQueue(run.items), (items) =>
          Effect.sync(() => {
            const tenth = Math.floor((events * 10) / (repeats * lines.length))
            events += items.length
            if (Math.floor((events * 10) / (repeats * lines.length)) !== tenth) samples.push(heap())
          })
        )
      })
    )
  )
  if (events !== repeats * lines.length) throw new Error(`read ${events} events of ${repeats * lines.length}`)
  return samples
}

const flat = async (megabytes: number) => {
  const began = performance.now()
  const samples = await readThrough(megabytes)
  const [first = Number.NaN, ...rest] = samples
  const growth = Math.max(...rest) - first
  console.log(
    `${megabytes} MB of stream in ${((performance.now() - began) / 1000).toFixed(1)} s; heap after a tenth ${(first / MB).toFixed(1)} MB, most it grew after that ${(growth / MB).toFixed(2)} MB`
  )
}

const [what = "1024"] = process.argv.slice(2)
const figures = await decoding()
if (what === "json") {
  console.log(JSON.stringify(figures))
} else {
  console.log(`the reader costs ${figures.ratio.toFixed(2)} × JSON.parse (target 1.6)`)
  await flat(Number(what))
}
