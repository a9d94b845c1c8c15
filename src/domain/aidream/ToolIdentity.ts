/**
 * Which tool a delegated call means (part 5).
 *
 * A tool has one identity and three spellings: `<namespace>:<local>` is its name
 * in the backend's ledger, `<namespace>__<local>` the one a model sees, and
 * `<local>` the key of a client's own table.
 */

/** A name as the model may see it: every canonical separator becomes `__`. Idempotent. */
export const toWireName = (name: string): string => name.replace(/[:.]/g, "__")

/** Whether a provider accepts the name. */
export const isWireName = (name: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(name)

/** Whether two names mean the same tool. A local name may contain `__`, so wire forms are compared. */
export const sameTool = (left: string, right: string): boolean => toWireName(left) === toWireName(right)

/** Names of older models and traces, and what they are called today (part 5.3). */
export const legacyAliases: ReadonlyMap<string, string> = new Map([
  ["browser_click", "click_element"],
  ["browser_close", "close_tab"],
  ["browser_get_element", "query_elements"],
  ["browser_navigate", "navigate_active_tab"],
  ["browser_screenshot", "take_screenshot"],
  ["browser_scroll", "scroll_page"],
  ["browser_select_option", "select_dropdown_option"],
  ["browser_wait_for", "wait_for"],
  ["browser_type_text", "type_into_element"],
  ["evaluate_javascript", "execute_javascript"]
])

/** Namespaces that belong to other executors unless a client says otherwise. */
export const otherExecutors: ReadonlyArray<string> = ["matrx-local", "matrx-user", "matrx-ai-core", "mcp"]

/** The names a delegated call carries. */
export interface CalledName {
  readonly toolName: string
  readonly canonicalName?: string | undefined
  /** The desktop a row is bound to. */
  readonly targetInstanceId?: string | undefined
}

/** What this client answers for. */
export interface Ownership {
  /** Whether a local handler of exactly this name exists. */
  readonly has: (name: string) => boolean
  /** Namespaces whose calls are left to others. Default `otherExecutors`. */
  readonly foreignNamespaces?: ReadonlyArray<string> | undefined
  /** Name prefixes whose calls are left to others. Default `local_`. */
  readonly foreignPrefixes?: ReadonlyArray<string> | undefined
  /** This client's own desktop id: a row bound to it is ours. */
  readonly instanceId?: string | undefined
  readonly aliases?: ReadonlyMap<string, string> | undefined
}

/** What a call turned out to be. */
export type Resolution =
  /** Ours: `name` is the key of the local table. */
  | { readonly _tag: "Local"; readonly name: string; readonly bundle: string | undefined }
  /** Another executor's: its row must stay untouched (part 5.5). */
  | { readonly _tag: "Foreign"; readonly owner: string }
  /** Nobody's: must be answered at once with an error (part 5.4). */
  | { readonly _tag: "Unknown"; readonly name: string }

interface Split {
  readonly bundle: string
  readonly local: string
}

const splitAt = (name: string, index: number, width: number): Split | undefined =>
  index > 0 ? { bundle: name.slice(0, index), local: name.slice(index + width) } : undefined

/** Splits once, at the first separator: the rest belongs to the local name. */
const split = (name: string): Split | undefined =>
  splitAt(name, name.indexOf(":"), 1) ?? splitAt(name, name.indexOf("__", 1), 2)

/** Resolves a call in the order of part 5.2. */
export const resolveTool = (called: CalledName, ownership: Ownership): Resolution => {
  const owner = foreignOwner(called, ownership)
  if (owner !== undefined) return { _tag: "Foreign", owner }
  if (called.canonicalName !== undefined && called.canonicalName !== "") {
    const canonical = splitAt(called.canonicalName, called.canonicalName.indexOf(":"), 1)
    return lookUp(canonical?.local ?? called.canonicalName, canonical?.bundle, ownership)
  }
  if (ownership.has(called.toolName)) return { _tag: "Local", name: called.toolName, bundle: undefined }
  const prefixed = split(called.toolName)
  if (prefixed !== undefined && isForeign(prefixed.bundle, ownership)) {
    return { _tag: "Foreign", owner: prefixed.bundle }
  }
  return lookUp(prefixed?.local ?? called.toolName, prefixed?.bundle, ownership)
}

const lookUp = (name: string, bundle: string | undefined, ownership: Ownership): Resolution => {
  if (ownership.has(name)) return { _tag: "Local", name, bundle }
  const alias = (ownership.aliases ?? legacyAliases).get(name)
  return alias !== undefined && ownership.has(alias)
    ? { _tag: "Local", name: alias, bundle }
    : { _tag: "Unknown", name }
}

const foreignOwner = (called: CalledName, ownership: Ownership): string | undefined => {
  const target = called.targetInstanceId
  if (target !== undefined && target !== "" && target !== ownership.instanceId) return target
  const namespace = called.canonicalName === undefined ? undefined : split(called.canonicalName)?.bundle
  if (namespace !== undefined && isForeign(namespace, ownership)) return namespace
  return (ownership.foreignPrefixes ?? ["local_"]).find((prefix) => called.toolName.startsWith(prefix))
}

/** A dotted child of an executor counts as its parent. */
const isForeign = (namespace: string, ownership: Ownership): boolean =>
  (ownership.foreignNamespaces ?? otherExecutors).some((name) => namespace === name || namespace.startsWith(`${name}.`))

const tokens = (name: string): ReadonlyArray<string> => name.split(/[_-]+/).filter((token) => token !== "")

const similarity = (left: string, right: string): number => {
  if (left === right) return 1
  if (left.includes(right) || right.includes(left)) return 0.85
  const rightTokens = tokens(right)
  const leftTokens = tokens(left)
  const shared = leftTokens.filter((token) => rightTokens.includes(token)).length
  return shared / Math.max(leftTokens.length, rightTokens.length, 1)
}

/** Up to three names close to an unknown one, best first (part 5.4). */
export const closeNames = (name: string, known: Iterable<string>): ReadonlyArray<string> => {
  const wanted = (split(name)?.local ?? name).toLowerCase()
  return Array.from(known, (candidate) => ({ candidate, score: similarity(wanted, candidate.toLowerCase()) }))
    .filter(({ score }) => score >= 0.45)
    .sort((left, right) => right.score - left.score || (left.candidate < right.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}
