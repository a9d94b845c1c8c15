import { CLIENT_KEY_PATTERN, generateClientKey } from "../domain/bridge/ClientKey.ts"

/** What the key is kept in: `localStorage`, or anything with its two methods. */
export interface KeyStorage {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
}

/** Where the key is kept unless told otherwise. */
export const KEY_STORAGE_NAME = "frontend-tools-key"

const isKey = (value: string | null): value is string => value !== null && CLIENT_KEY_PATTERN.test(value)

// What could not be stored lasts as long as the page, the same for everyone who asks.
const unstored = new Map<string, string>()

/**
 * The application's key: made at the first call and the same from then on, in every tab.
 * A storage that fails (a private window, a sandboxed frame, a worker, which has none)
 * gives a key that lasts as long as the page. `buildClientKeyClipboardText` makes it
 * the text that a person pastes to a model.
 */
export const storedClientKey = (
  options: { readonly storage?: KeyStorage | undefined; readonly name?: string | undefined } = {}
): string => {
  const name = options.name ?? KEY_STORAGE_NAME
  try {
    // The property itself throws where storage is forbidden.
    const storage = options.storage ?? globalThis.localStorage
    const stored = storage.getItem(name)
    if (isKey(stored)) return stored
    storage.setItem(name, unstored.get(name) ?? generateClientKey())
    const kept = storage.getItem(name)
    if (isKey(kept)) return kept
  } catch {
    // Forbidden, full or not there.
  }
  const key = unstored.get(name) ?? generateClientKey()
  unstored.set(name, key)
  return key
}
