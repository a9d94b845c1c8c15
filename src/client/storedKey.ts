import { CLIENT_KEY_PATTERN, generateClientKey } from "../domain/bridge/ClientKey.ts"

/** What the key is kept in: `localStorage`, or anything with its two methods. */
export interface KeyStorage {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
}

/** Where the key is kept unless told otherwise. */
export const KEY_STORAGE_NAME = "frontend-tools-key"

/**
 * The application's key: made at the first call and the same from then on. A storage
 * that fails (a private window, a sandboxed frame) gives a key that lasts as long as
 * the page.
 */
export const storedClientKey = (
  options: { readonly storage?: KeyStorage | undefined; readonly name?: string | undefined } = {}
): string => {
  const name = options.name ?? KEY_STORAGE_NAME
  try {
    // The property itself throws where storage is forbidden.
    const storage = options.storage ?? globalThis.localStorage
    const stored = storage.getItem(name)
    if (stored !== null && CLIENT_KEY_PATTERN.test(stored)) return stored
    const key = generateClientKey()
    storage.setItem(name, key)
    return key
  } catch {
    return generateClientKey()
  }
}
