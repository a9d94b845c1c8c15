/** Processes that are killed while they change the roster, against what they had acknowledged. */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Random, type Scope } from "effect"
import { build } from "vite"
import { BridgeConfig, Namespace, Roster } from "../../../src/index.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { type Entries, entriesAfter } from "./rosterChanges.ts"

const FILE = "frontend-tools-clients.json"
const KILLS = 200
/** Series of kills that run side by side, each on a folder of its own: most of the time goes to starting processes. */
const SERIES = 4
/**
 * A process is killed this long after its start or after one of its first changes, at
 * most. A change takes some milliseconds, so any step of the opening or of a change may
 * be hit.
 */
const LIFETIME_MILLIS = 16
const CHANGES_BEFORE = 3

const textAfter = (number: number) => `${JSON.stringify(entriesAfter(number), undefined, 2)}\n`

/** What a reader finds: nothing, or the whole text of a file that only its owner can read. */
const look = (folder: string): string => {
  let handle: number
  try {
    handle = fs.openSync(join(folder, FILE), "r")
  } catch {
    return textAfter(-1)
  }
  try {
    assert.strictEqual(fs.fstatSync(handle).mode & 0o777, 0o600)
    return fs.readFileSync(handle, "utf8")
  } finally {
    fs.closeSync(handle)
  }
}

/** The change after which the file reads like this: `from`, or one of the next `ahead`. */
const changeBehind = (text: string, from: number, ahead: number): number => {
  for (let number = from; number <= from + ahead; number++) if (text === textAfter(number)) return number
  return assert.fail(`after change ${from} the file reads ${JSON.stringify(text)}`)
}

/** One loadable file of the program and all it imports, which starts several times as fast. */
const bundleWriter = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  yield* Effect.promise(() =>
    build({
      configFile: false,
      logLevel: "error",
      root: import.meta.dirname,
      ssr: { noExternal: true },
      build: {
        ssr: "rosterWriter.ts",
        outDir: folder,
        minify: true,
        rolldownOptions: { output: { entryFileNames: "writer.mjs" } }
      }
    })
  )
  return join(folder, "writer.mjs")
})

interface Writer {
  /** Waits until it has started and made this many changes. */
  readonly hasMade: (changes: number) => Effect.Effect<void>
  /** The last change the process has acknowledged. */
  readonly acknowledged: () => number
  /** Kills it and gives what it had acknowledged when it was gone. */
  readonly kill: Effect.Effect<number>
}

const startWriter = (program: string, folder: string, first: number): Effect.Effect<Writer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [program, folder, String(first)], { stdio: ["ignore", "pipe", "inherit"] })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  ).pipe(Effect.map((child) => watch(child, first)))

const watch = (child: ChildProcess, first: number): Writer => {
  let output = ""
  // The first line says that it has started, the last has no end yet.
  const acknowledgements = () => output.split("\n").slice(1, -1)
  const acknowledged = () => Number(acknowledgements().at(-1) ?? first - 1)
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text
    child.emit("output")
  })
  return {
    acknowledged,
    hasMade: (changes) =>
      Effect.callback((resume) => {
        const check = () => {
          if (output !== "" && acknowledgements().length >= changes) resume(Effect.void)
        }
        child.on("output", check)
        check()
        return Effect.sync(() => child.off("output", check))
      }),
    kill: Effect.callback((resume) => {
      // Its output has been read to the end then.
      child.once("close", (code, signal) => {
        const ended = new Error(`the writer ended by itself: ${code}`)
        resume(signal === "SIGKILL" ? Effect.sync(acknowledged) : Effect.die(ended))
      })
      child.kill("SIGKILL")
    })
  }
}

/** Runs a process on the folder from change `first` on, and kills it. Gives the number of the next change. */
const killOnce = Effect.fnUntraced(function* (program: string, folder: string, first: number) {
  const writer = yield* startWriter(program, folder, first)
  const changesBefore = yield* Random.nextIntBetween(0, CHANGES_BEFORE)
  const lifetime = yield* Random.nextBetween(0, LIFETIME_MILLIS)
  let seen = first - 1
  const read = Effect.sync(() => {
    // Acknowledged before the look, so in the file; and no reader is taken back to an older one.
    const least = Math.max(seen, writer.acknowledged())
    seen = changeBehind(look(folder), least, 100)
  })
  yield* Effect.raceFirst(
    Effect.forever(Effect.andThen(read, Effect.sleep("1 millis"))),
    Effect.andThen(writer.hasMade(changesBefore), Effect.sleep(lifetime))
  )
  const acknowledged = yield* writer.kill
  const last = changeBehind(look(folder), acknowledged, 1)
  assert.isAtLeast(last, seen)
  for (const name of fs.existsSync(folder) ? fs.readdirSync(folder) : []) {
    assert.strictEqual(fs.statSync(join(folder, name)).mode & 0o777, 0o600, name)
  }
  return last + 1
}, Effect.scoped)

const admits = (folder: string, entries: Entries) =>
  Effect.gen(function* () {
    const roster = yield* Roster
    for (const { key, namespace } of entries) {
      assert.deepStrictEqual(yield* roster.authenticate(key), Option.some(Namespace.make(namespace)))
    }
    assert.lengthOf(yield* roster.clients, entries.length)
  }).pipe(
    Effect.provide(
      Layer.fresh(Roster.layer).pipe(
        Layer.provide(BridgeConfig.layer({ stateDir: folder })),
        Layer.provide(NodeServices.layer)
      )
    )
  )

describe("Roster", () => {
  it.live(
    `survives ${KILLS} kills: the file is whole, closed to others and holds every acknowledged change`,
    () =>
      Effect.gen(function* () {
        const program = yield* bundleWriter
        const series = Effect.gen(function* () {
          const folder = join(yield* temporaryFolder, "state")
          let next = 0
          for (let kill = 0; kill < KILLS / SERIES; kill++) next = yield* killOnce(program, folder, next)

          const leftovers = fs.readdirSync(folder).filter((name) => name !== FILE)
          for (const name of leftovers) fs.utimesSync(join(folder, name), 0, 0)
          yield* admits(folder, entriesAfter(next - 1))
          assert.deepStrictEqual(fs.readdirSync(folder), [FILE])
          return { changes: next, leftovers: leftovers.length }
        })
        const results = yield* Effect.all(
          Array.from({ length: SERIES }, () => series),
          { concurrency: SERIES }
        )
        // Otherwise no kill hit a write, and all this has shown nothing.
        const total = (field: "changes" | "leftovers") => results.reduce((sum, result) => sum + result[field], 0)
        assert.isAbove(total("changes"), KILLS / 4)
        assert.isAbove(total("leftovers"), KILLS / 20)
      }),
    120_000
  )
})
