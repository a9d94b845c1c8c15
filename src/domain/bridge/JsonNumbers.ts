/**
 * Numbers that `JSON.parse` reads and JSON cannot carry on: a negative zero, and
 * the infinity it makes of `1e999`. Hosts refuse both as lossy (bridge protocol,
 * parts d and e).
 */

// A zero with a sign where a value starts, an exponent of three digits, or digits
// beyond the range of a double. A text inside the JSON may match too; that costs a walk.
const SUSPECT = /(?:^|[[:,\s])-0(?:[.eE,\]}\s]|$)|[eE]\+?0*\d{3}|\d{309}/

/** Whether a JSON text may hold such a number. Cheap enough for every frame. */
export const mayHoldLossyNumber = (json: string): boolean => SUSPECT.test(json)

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

/**
 * Turns every negative zero inside a parsed value into a zero, in place, and says
 * whether all its numbers are finite. Deep values cost no stack.
 */
export const repairNumbers = (root: Record<string, unknown>): boolean => {
  const open: Array<Record<string, unknown>> = [root]
  for (let container = open.pop(); container !== undefined; container = open.pop()) {
    for (const key of Object.keys(container)) {
      const value = container[key]
      if (isContainer(value)) open.push(value)
      else if (Object.is(value, -0)) container[key] = 0
      else if (typeof value === "number" && !Number.isFinite(value)) return false
    }
  }
  return true
}
