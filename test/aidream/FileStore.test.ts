import { readdirSync, statSync, writeFileSync } from "node:fs"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, FileSystem, Layer, PlatformError } from "effect"
import { KeyValueStore } from "effect/persistence"
import { layerFileStore } from "../../src/aidream.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { until } from "./support/until.ts"

const KEY = "aidream/calls/a%2Fb/..*?ü"

interface Fault {
  /** The step that fails. */
  step?: "write" | "sync" | "rename"
  /** What writes of `KEY` wait for before they take their place. */
  hold?: Deferred.Deferred<void>
}

/** The store, over a file system that fails in the step of this name while it is set. */
const storeIn = Effect.fnUntraced(function* (folder: string, fault: Fault = {}) {
  const failing = (step: NonNullable<Fault["step"]>) =>
    Effect.suspend(() =>
      fault.step === step
        ? Effect.fail(PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: step }))
        : Effect.void
    )
  const faulty = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => ({
      ...fs,
      open: (...args: Parameters<typeof fs.open>) =>
        Effect.map(fs.open(...args), (file) => ({
          ...file,
          // Half of it is on the disk by then.
          writeAll: (bytes: Uint8Array) =>
            Effect.andThen(
              file.writeAll(fault.step === "write" ? bytes.subarray(0, bytes.length / 2) : bytes),
              failing("write")
            ),
          sync: Effect.andThen(failing("sync"), file.sync)
        })),
      rename: (from: string, to: string) =>
        Effect.andThen(
          fault.hold !== undefined && to.endsWith(encodeURIComponent(KEY)) ? Deferred.await(fault.hold) : Effect.void,
          Effect.andThen(failing("rename"), fs.rename(from, to))
        )
    }))
  ).pipe(Layer.provide(NodeFileSystem.layer))
  const context = yield* Layer.build(layerFileStore(folder).pipe(Layer.provide(Layer.merge(faulty, NodePath.layer))))
  return Context.get(context, KeyValueStore.KeyValueStore)
})

describe("the journal's files", () => {
  it.effect("keep what was written, under any key, for the owner alone", () =>
    Effect.gen(function* () {
      const folder = `${yield* temporaryFolder}/deep/journal`
      const store = yield* storeIn(folder)
      yield* store.set(KEY, "one")
      yield* store.set(KEY, "two ü")
      yield* store.set("other", "x")
      yield* store.remove("other")
      yield* store.remove("never there")
      const again = yield* storeIn(folder)
      assert.deepStrictEqual(yield* again.keys, [KEY])
      assert.strictEqual(yield* again.get(KEY), "two ü")
      assert.isUndefined(yield* again.get("other"))
      assert.strictEqual(yield* again.size, 1)
      assert.strictEqual(statSync(folder).mode & 0o777, 0o700)
      for (const name of readdirSync(folder)) assert.strictEqual(statSync(`${folder}/${name}`).mode & 0o777, 0o600)
      yield* again.clear
      assert.deepStrictEqual(readdirSync(folder), [])
    })
  )

  it.effect("a write that dies half-way leaves the old value, whole, and nothing beside it", () =>
    Effect.gen(function* () {
      for (const step of ["write", "sync", "rename"] as const) {
        const folder = yield* temporaryFolder
        const fault: Fault = {}
        const store = yield* storeIn(folder, fault)
        yield* store.set(KEY, "running")
        fault.step = step
        const failed = yield* Effect.flip(store.set(KEY, "finished, with a long result"))
        assert.strictEqual(failed._tag, "KeyValueStoreError")
        assert.strictEqual(yield* (yield* storeIn(folder)).get(KEY), "running", step)
        assert.strictEqual(readdirSync(folder).length, 1)
      }
    })
  )

  it.effect("what a killed process left half-written is no value and is removed", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* (yield* storeIn(folder)).set(KEY, "running")
      const [file = ""] = readdirSync(folder)
      writeFileSync(`${folder}/${file}%.7`, "fini")
      const store = yield* storeIn(folder)
      assert.deepStrictEqual(yield* store.keys, [KEY])
      assert.strictEqual(yield* store.get(KEY), "running")
      assert.deepStrictEqual(readdirSync(folder), [file])
    })
  )

  it.effect("writes of one key follow each other, those of another do not wait", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const fault: Fault = { hold: yield* Deferred.make<void>() }
      const store = yield* storeIn(folder, fault)
      const slow = yield* Effect.forkScoped(store.set(KEY, "running"))
      yield* until("the first write is about to end", () => readdirSync(folder).some((name) => name.includes("%.")))
      const later = yield* Effect.forkScoped(store.set(KEY, "finished"))
      yield* store.set("other", "x")
      assert.isUndefined(later.pollUnsafe())
      yield* Deferred.succeed(fault.hold ?? (yield* Deferred.make<void>()), undefined)
      yield* Fiber.join(slow)
      yield* Fiber.join(later)
      assert.strictEqual(yield* store.get(KEY), "finished")
      assert.strictEqual(readdirSync(folder).length, 2)
    })
  )
})
