import { Effect, FileSystem, Hash, Layer, Path, type PlatformError, Semaphore } from "effect"
import { KeyValueStore } from "effect/persistence"

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700

/** Writes of one key follow each other; those of different keys run side by side, this many at a time. */
const LANES = 64

// Encoded keys have two hex digits after every `%`, so no key is ever called this.
const TEMPORARY = "%."

/**
 * A `KeyValueStore` in a folder, one file per key, for a journal that must survive its
 * process.
 *
 * A file is replaced in one step and is on the disk before its write succeeds: whenever
 * the process or the machine dies, a key has its old value or its new one, never a part
 * of either. A store that empties a file before it fills it would now and then forget
 * that a call was running, and the call would run twice. Folder and files are the
 * owner's alone. One process at a time may use a folder.
 */
export const layerFileStore = (
  folder: string
): Layer.Layer<KeyValueStore.KeyValueStore, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    KeyValueStore.KeyValueStore,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const lanes = Array.from({ length: LANES }, () => Semaphore.makeUnsafe(1))
      const utf8 = new TextEncoder()
      let written = 0

      yield* fs.makeDirectory(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
      const names = Effect.map(fs.readDirectory(folder), (all) => all.filter((name) => !name.includes(TEMPORARY)))

      // What a process left that died while it wrote.
      const abandoned = (yield* fs.readDirectory(folder)).filter((name) => name.includes(TEMPORARY))
      yield* Effect.forEach(abandoned, (name) => fs.remove(path.join(folder, name), { force: true }), { discard: true })

      const fileOf = (key: string) => path.join(folder, encodeURIComponent(key))

      /** Runs the step of a key after those of the same key that began before. */
      const inTurn = <A>(method: string, key: string, step: Effect.Effect<A, PlatformError.PlatformError>) => {
        const lane = lanes[Math.abs(Hash.string(key)) % LANES]
        return (lane === undefined ? step : lane.withPermit(step)).pipe(failing(method, key))
      }

      // Makes the rename itself last; not every platform can sync a folder.
      const syncFolder = Effect.ignore(
        Effect.scoped(Effect.flatMap(fs.open(folder, { flag: "r" }), (handle) => handle.sync))
      )

      const replace = Effect.fnUntraced(function* (key: string, value: string) {
        const file = fileOf(key)
        const temporary = `${file}${TEMPORARY}${written++}`
        yield* Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* fs.open(temporary, { flag: "wx", mode: OWNER_ONLY_FILE })
            yield* handle.writeAll(utf8.encode(value))
            yield* handle.sync
          })
        ).pipe(
          Effect.andThen(fs.rename(temporary, file)),
          Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true })))
        )
        yield* syncFolder
      }, Effect.uninterruptible)

      return KeyValueStore.makeStringOnly({
        get: (key) =>
          fs.readFileString(fileOf(key)).pipe(
            Effect.catchReason("PlatformError", "NotFound", () => Effect.undefined),
            failing("get", key)
          ),
        set: (key, value) => inTurn("set", key, replace(key, value)),
        remove: (key) => inTurn("remove", key, fs.remove(fileOf(key), { force: true })),
        clear: Effect.flatMap(names, (all) =>
          Effect.forEach(all, (name) => fs.remove(path.join(folder, name), { force: true }), { discard: true })
        ).pipe(failing("clear")),
        size: Effect.map(names, (all) => all.length).pipe(failing("size")),
        keys: Effect.map(names, (all) => all.flatMap(decoded)).pipe(failing("keys"))
      })
    })
  )

const failing =
  (method: string, key?: string) =>
  <A>(effect: Effect.Effect<A, PlatformError.PlatformError>): Effect.Effect<A, KeyValueStore.KeyValueStoreError> =>
    Effect.mapError(
      effect,
      (cause) =>
        new KeyValueStore.KeyValueStoreError({
          method,
          message: cause.message,
          cause,
          ...(key === undefined ? {} : { key })
        })
    )

/** The key of a file; none for a file that is not the store's. */
const decoded = (name: string): ReadonlyArray<string> => {
  try {
    return [decodeURIComponent(name)]
  } catch {
    return []
  }
}
