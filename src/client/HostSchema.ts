import { isJsonObject, type JsonObject } from "../domain/bridge/RemoteTool.ts"

/** What a host's JSON Schema could not say, and where. The description says it instead. */
export interface DroppedKeyword {
  /** From the root, such as `properties.user`. */
  readonly path: string
  readonly keyword: string
}

/** A schema in the subset that every host takes. */
export interface HostSchema {
  readonly schema: JsonObject
  readonly dropped: ReadonlyArray<DroppedKeyword>
}

const ANNOTATIONS = ["title", "description", "default", "examples"]

/** Keywords that a description can say as well, with their value. */
const BOUNDS = [
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties"
]

/** Keywords that say nothing about a value. */
const SILENT = ["$schema", "$id", "$comment", "$defs", "definitions", "$anchor"]

const typeOf = (value: unknown): string => (value === null ? "null" : typeof value)

const isScalarType = (type: string) => type === "string" || type === "number" || type === "boolean" || type === "null"

const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const objects = (value: unknown): ReadonlyArray<JsonObject> => list(value).filter((item) => isJsonObject(item))

const strings = (value: unknown): ReadonlyArray<string> => list(value).filter((item) => typeof item === "string")

const omit = (node: JsonObject, ...keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(node).filter(([key]) => !keys.includes(key)))

const pick = (node: JsonObject, keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(node).filter(([key, value]) => keys.includes(key) && value !== undefined))

const join = (path: string, step: string) => (path === "" ? step : `${path}.${step}`)

/** Values of a property that tells the branches of a union apart. */
const tagValues = (node: JsonObject, property: string): ReadonlyArray<unknown> | undefined => {
  if (!strings(node.required).includes(property) || !isJsonObject(node.properties)) return undefined
  const field = node.properties[property]
  if (!isJsonObject(field)) return undefined
  return Array.isArray(field.enum) ? field.enum : "const" in field ? [field.const] : undefined
}

/** Whether no value can match both, as far as their types and constants show. */
const areDisjoint = (a: JsonObject, b: JsonObject): boolean => {
  if (typeof a.type !== "string" || typeof b.type !== "string") return false
  const numeric = (type: string) => (type === "integer" ? "number" : type)
  if (numeric(a.type) !== numeric(b.type)) return true
  const [left, right] = [a, b].map((node) =>
    Array.isArray(node.enum) ? node.enum : "const" in node ? [node.const] : undefined
  )
  if (left !== undefined && right !== undefined) return left.every((value) => !right.includes(value))
  if (a.type !== "object" || !isJsonObject(a.properties)) return false
  return Object.keys(a.properties).some((property) => {
    const here = tagValues(a, property)
    const there = tagValues(b, property)
    return here !== undefined && there !== undefined && here.every((value) => !there.includes(value))
  })
}

/**
 * Rewrites a JSON Schema into the subset that hosts take (bridge protocol, part d):
 * local references are put in place, unions become `oneOf` where their branches exclude
 * each other, bounds move into the description. Whatever the subset cannot say makes
 * the schema wider, never narrower, and is listed in `dropped`.
 */
export const toHostSchema = (root: JsonObject): HostSchema => {
  const dropped: Array<DroppedKeyword> = []
  const drop = (path: string, keyword: string) => {
    dropped.push({ path, keyword })
  }

  const resolve = (ref: string): JsonObject | undefined => {
    let found: unknown = root
    for (const step of ref.replace(/^#\/?/, "").split("/")) {
      const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")
      found = isJsonObject(found) ? found[key] : undefined
    }
    return ref.startsWith("#") && isJsonObject(found) ? found : undefined
  }

  /** What a node says itself, through its references and in its `allOf`, as one node. */
  const gather = (input: JsonObject, path: string, above: ReadonlyArray<string>) => {
    const open = [...above]
    const parts: Array<JsonObject> = []
    const collect = ({ $ref, allOf, ...own }: JsonObject) => {
      if (typeof $ref === "string" && (above.includes($ref) || !open.includes($ref))) {
        const target = above.includes($ref) ? undefined : resolve($ref)
        open.push($ref)
        if (target === undefined) drop(path, "$ref")
        else collect(target)
      }
      for (const part of objects(allOf)) collect(part)
      parts.push(omit(own, ...SILENT))
    }
    collect(input)
    const node: Record<string, unknown> = {}
    for (const [keyword, value] of parts.flatMap(Object.entries)) {
      const before = node[keyword]
      if (keyword === "properties" && isJsonObject(before) && isJsonObject(value)) {
        const both = Object.entries(value).map(([name, field]) => [
          name,
          Object.hasOwn(before, name) ? { allOf: [before[name], field] } : field
        ])
        node.properties = { ...before, ...Object.fromEntries(both) }
      } else if (keyword === "required" && before !== undefined) {
        node.required = Array.from(new Set([...strings(before), ...strings(value)]))
      } else {
        const differs = before !== undefined && JSON.stringify(before) !== JSON.stringify(value)
        if (differs && !ANNOTATIONS.includes(keyword)) drop(path, keyword)
        node[keyword] = value
      }
    }
    return { node, open }
  }

  const union = (
    node: JsonObject,
    keyword: "anyOf" | "oneOf",
    path: string,
    open: ReadonlyArray<string>
  ): JsonObject => {
    const rest = omit(node, keyword)
    const branches = new Map<string, JsonObject>()
    for (const [index, branch] of list(node[keyword]).entries()) {
      if (branch === false) continue
      const schema = rewrite(
        { allOf: [omit(rest, ...ANNOTATIONS), branch === true ? {} : branch] },
        `${join(path, keyword)}.${index}`,
        open
      )
      // A union inside the union is part of it.
      for (const each of Array.isArray(schema.oneOf) ? objects(schema.oneOf) : [schema]) {
        branches.set(JSON.stringify(each), each)
      }
    }
    const distinct = Array.from(branches.values())
    const [only] = distinct
    const annotations = pick(node, ANNOTATIONS)
    if (distinct.length === 1 && only !== undefined) return { ...only, ...annotations }
    const apart = distinct.every((a, i) => distinct.slice(i + 1).every((b) => areDisjoint(a, b)))
    if (apart && distinct.length > 1) return { ...annotations, oneOf: distinct }
    drop(path, keyword)
    return rewrite(rest, path, open)
  }

  /** Constants, each group of one type. */
  const constants = (node: JsonObject, values: ReadonlyArray<unknown>, path: string): JsonObject => {
    const annotations = pick(node, ANNOTATIONS)
    const types = Array.from(new Set(values.map(typeOf)))
    if (types.length === 0 || !types.every(isScalarType)) {
      drop(path, "enum" in node ? "enum" : "const")
      return annotations
    }
    const groups = types.map((type) => {
      const group = values.filter((value) => typeOf(value) === type)
      return type === "null" ? { type } : { type, enum: group }
    })
    const [only] = groups
    return groups.length === 1 && only !== undefined ? { ...only, ...annotations } : { ...annotations, oneOf: groups }
  }

  const rewrite = (input: JsonObject, path: string, above: ReadonlyArray<string>): JsonObject => {
    const { node, open } = gather(input, path, above)
    if (Array.isArray(node.anyOf)) return union(node, "anyOf", path, open)
    if (Array.isArray(node.oneOf)) return union(node, "oneOf", path, open)
    if (Array.isArray(node.enum)) return constants(node, node.enum, path)
    if ("const" in node) return constants(node, [node.const], path)
    if (Array.isArray(node.type)) {
      const types = strings(node.type)
      return union(
        { ...pick(node, ANNOTATIONS), anyOf: types.map((type) => ({ ...omit(node, ...ANNOTATIONS), type })) },
        "anyOf",
        path,
        open
      )
    }
    return single(node, path, open)
  }

  /** A node of one type, or of none. */
  const single = (node: JsonObject, path: string, open: ReadonlyArray<string>): JsonObject => {
    const result: Record<string, unknown> = {}
    const said: Array<string> = []
    if (typeof node.type === "string") result.type = node.type
    for (const [keyword, value] of Object.entries(node)) {
      if (keyword === "type" || value === undefined) continue
      if (ANNOTATIONS.includes(keyword)) result[keyword] = value
      else if (keyword === "properties" && node.type === "object" && isJsonObject(value)) {
        result.properties = Object.fromEntries(
          Object.entries(value).map(([name, field]) => {
            const at = join(path, `properties.${name}`)
            return [name, isJsonObject(field) ? rewrite(field, at, open) : {}]
          })
        )
      } else if (keyword === "required" && node.type === "object" && Array.isArray(value)) {
        const known = isJsonObject(node.properties) ? Object.keys(node.properties) : []
        const names = strings(value).filter((name) => known.includes(name))
        if (names.length > 0) result.required = names
        if (names.length < value.length) drop(path, keyword)
      } else if (keyword === "additionalProperties" && typeof value === "boolean" && node.type === "object") {
        if (!value) result.additionalProperties = false
      } else if (keyword === "items" && node.type === "array" && isJsonObject(value)) {
        result.items = rewrite(value, join(path, "items"), open)
      } else if (BOUNDS.includes(keyword)) {
        // That an integer is a safe one goes without saying.
        if (Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) continue
        said.push(`${keyword} ${typeof value === "string" ? value : JSON.stringify(value)}`)
        drop(path, keyword)
      } else drop(path, keyword)
    }
    if (said.length > 0) {
      const text = typeof node.description === "string" ? `${node.description} ` : ""
      result.description = `${text}(${said.join(", ")})`
    }
    return result
  }

  return { schema: rewrite(root, "", []), dropped }
}
