/** Names of runtimes that can run a tool (part 1). */

/** A browser extension. */
export const CHROME_EXTENSION = "chrome-extension"
/** A web page. */
export const MATRX_USER = "matrx-user"
/** A desktop engine. */
export const MATRX_LOCAL = "matrx-local"

/** Whether two names mean one executor: a dotted child counts as its parent. */
export const sameExecutor = (left: string, right: string): boolean =>
  left === right || left.startsWith(`${right}.`) || right.startsWith(`${left}.`)

/** Whether one of the live executors is this one. */
export const isLive = (executor: string, live: Iterable<string>): boolean => {
  for (const name of live) if (sameExecutor(executor, name)) return true
  return false
}
