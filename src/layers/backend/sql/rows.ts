/** What columns become. Drivers differ in how they return a BIGINT, so numbers are read, not trusted. */
import { isJsonObject, type JsonObject } from "../../../domain/aidream/Absent.ts"

export type Row = Readonly<Record<string, unknown>>

export const text = (value: unknown): string => (typeof value === "string" ? value : String(value ?? ""))

export const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null)

export const int = (value: unknown): number => Number(value ?? 0)

export const isoOrNull = (value: unknown): string | null =>
  value === null || value === undefined ? null : new Date(int(value)).toISOString()

export const json = (value: unknown): unknown => (typeof value === "string" ? JSON.parse(value) : null)

export const jsonObject = (value: unknown): JsonObject => {
  const parsed = json(value)
  return isJsonObject(parsed) ? parsed : {}
}

export const jsonStrings = (value: unknown): ReadonlyArray<string> => {
  const parsed = json(value)
  return Array.isArray(parsed) ? parsed.filter((entry): entry is string => typeof entry === "string") : []
}
