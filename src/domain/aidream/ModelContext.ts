/** The free-form facts a request tells the model (part 4.4). */
import { isJsonObject, type JsonObject } from "./Absent.ts"

/**
 * Shortens every text longer than `limit` UTF-16 units. Beside a shortened text
 * `<key>_truncated: true` and `<key>_length`, its full length, say so.
 */
export const capContext = (context: JsonObject, limit: number): JsonObject => {
  const capped: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(context)) {
    if (typeof value === "string" && value.length > limit) {
      capped[key] = value.slice(0, limit)
      capped[`${key}_truncated`] = true
      capped[`${key}_length`] = value.length
    } else {
      capped[key] = capValue(value, limit)
    }
  }
  return capped
}

const capValue = (value: unknown, limit: number): unknown => {
  if (typeof value === "string") return value.length > limit ? value.slice(0, limit) : value
  if (Array.isArray(value)) return value.map((item) => capValue(item, limit))
  return isJsonObject(value) ? capContext(value, limit) : value
}
