import { Effect, Result, Schema } from "effect"
import { KeyValueStore } from "effect/persistence"

/** A small map that survives its process: read from memory, written through to a store. */
export interface StoredMap<A> {
  readonly get: (key: string) => A | undefined
  readonly values: () => ReadonlyArray<A>
  readonly keys: () => ReadonlyArray<string>
  /** Visible at once; durable when the effect succeeds. */
  readonly set: (key: string, value: A) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
  readonly remove: (key: string) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
}

/**
 * Loads everything under `prefix`. An entry that can't be read is dropped with a
 * warning: it is from another version, and nothing can be done with it.
 */
export const makeStoredMap = Effect.fnUntraced(function* <S extends Schema.ConstraintCodec<unknown, unknown>>(
  prefix: string,
  schema: S
): Effect.fn.Return<StoredMap<S["Type"]>, KeyValueStore.KeyValueStoreError, KeyValueStore.KeyValueStore> {
  const store = KeyValueStore.prefix(yield* KeyValueStore.KeyValueStore, prefix)
  const decode = Schema.decodeUnknownResult(schema)
  const encode = Schema.encodeSync(schema)
  const entries = new Map<string, S["Type"]>()

  for (const key of yield* store.keys) {
    const text = yield* store.get(key)
    if (text === undefined) continue
    const entry = Result.flatMap(
      Result.try((): unknown => JSON.parse(text)),
      decode
    )
    if (Result.isSuccess(entry)) {
      entries.set(key, entry.success)
    } else {
      yield* Effect.logWarning(`dropped the unreadable entry ${prefix}${key}`)
      yield* store.remove(key)
    }
  }

  return {
    get: (key) => entries.get(key),
    values: () => Array.from(entries.values()),
    keys: () => Array.from(entries.keys()),
    set: (key, value) =>
      Effect.suspend(() => {
        entries.set(key, value)
        return store.set(key, JSON.stringify(encode(value)))
      }),
    remove: (key) =>
      Effect.suspend(() => {
        entries.delete(key)
        return store.remove(key)
      })
  }
})
