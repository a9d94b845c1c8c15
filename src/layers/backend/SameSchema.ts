import { isJsonObject } from "../../domain/aidream/Absent.ts"

/** Keywords whose arrays are sets. */
const unordered: ReadonlySet<string> = new Set(["required", "enum", "type", "anyOf", "oneOf", "allOf"])

/**
 * Whether two JSON Schemas say the same: the order of keys, and of the members of
 * `required`, `enum`, `type`, `anyOf`, `oneOf` and `allOf`, does not count.
 */
export const sameSchema = (left: unknown, right: unknown): boolean => normal(left) === normal(right)

const normal = (value: unknown, isSet = false): string => {
  if (Array.isArray(value)) {
    const members = value.map((member) => normal(member))
    return `[${(isSet ? members.sort() : members).join(",")}]`
  }
  if (!isJsonObject(value)) return JSON.stringify(value) ?? "null"
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${normal(value[key], unordered.has(key))}`)
  return `{${entries.join(",")}}`
}
