/** The changes a killed writer makes to a roster, by number, so that a test knows what they add up to. */
import { ClientKey } from "../../../src/domain/bridge/ClientKey.ts"
import { Namespace } from "../../../src/domain/bridge/ToolName.ts"

/** How many namespaces the changes go through. */
const NAMESPACES = 12

export interface Change {
  readonly namespace: Namespace
  /** Absent when the namespace is revoked. */
  readonly key?: ClientKey
}

/**
 * Each is a real change. Of three visits to a namespace two give it a new key and one
 * revokes it, which is another one for its neighbours: no two states are the same.
 */
export const changeOf = (number: number): Change => {
  const index = number % NAMESPACES
  const visit = Math.floor(number / NAMESPACES)
  const namespace = Namespace.make(`app${index}`)
  if (visit > 0 && (visit + index) % 3 === 2) return { namespace }
  return { namespace, key: ClientKey.make(number.toString(16).padStart(64, "0")) }
}

export type Entries = ReadonlyArray<{ readonly namespace: string; readonly key: string }>

/** The file's entries after the changes from 0 to this one, in its order. */
export const entriesAfter = (number: number): Entries => {
  const entries = new Map<string, string>()
  // Every namespace has been revoked since, and so begins anew.
  for (let n = Math.max(0, number - NAMESPACES * 3); n <= number; n++) {
    const { key, namespace } = changeOf(n)
    if (key === undefined) entries.delete(namespace)
    else entries.set(namespace, key)
  }
  return Array.from(entries, ([namespace, key]) => ({ namespace, key }))
}
