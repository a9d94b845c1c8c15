/**
 * The three names of a mirrored tool: the namespace of its application, the raw
 * name the application gave it, and the public name a host lists it under
 * (bridge protocol, part b).
 */
import { sha256 } from "@noble/hashes/sha2.js"
import { Schema } from "effect"
import { Hex } from "effect/encoding"

// One text, whether it is no string or one that does not match.
const textMatching = (pattern: RegExp) => {
  const message = `must match ${pattern.source}`
  return Schema.String.annotate({ message }).check(Schema.isPattern(pattern, { message }))
}

export const NAMESPACE_PATTERN = /^[A-Za-z0-9_-]{1,32}$/

/** Names one application; the prefix of every public name of its tools. */
export const Namespace = textMatching(NAMESPACE_PATTERN).pipe(Schema.brand("Namespace"))
export type Namespace = typeof Namespace.Type

export const TOOL_NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/

/** An application's own name for one of its tools. */
export const RawName = textMatching(TOOL_NAME_PATTERN).pipe(Schema.brand("RawName"))
export type RawName = typeof RawName.Type

/** What a host and a model call the tool. At most 64 characters of `[A-Za-z0-9_-]`. */
export const PublicName = textMatching(TOOL_NAME_PATTERN).pipe(Schema.brand("PublicName"))
export type PublicName = typeof PublicName.Type

const SEPARATOR = "__"
const MAX_LENGTH = 64
const HASH_LENGTH = 12

const isClean = Schema.is(PublicName)
const utf8 = new TextEncoder()

/**
 * The public name of a tool: `namespace__raw` where that is a legal name of at
 * most 64 characters, otherwise its legal beginning and 12 hex characters of a
 * SHA-256 over both names.
 *
 * Raw names that the wire refuses are taken too, since a host may list tools that
 * did not come over it.
 */
export const publicName = (namespace: string, raw: string): PublicName => {
  const joined = namespace + SEPARATOR + raw
  if (isClean(joined)) return joined
  const hash = Hex.encode(sha256(utf8.encode(`${namespace}\0${raw}`))).slice(0, HASH_LENGTH)
  const normal = joined.replace(/[^A-Za-z0-9_-]/g, "_")
  return PublicName.make(`${normal.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`)
}

/**
 * The namespaces that cannot exist beside this one, as far as they are shorter: `a`
 * beside `a__b`, since a tool `b__c` of the one and a tool `c` of the other would both
 * be `a__b__c`; and `a` beside `a_`, since `_b` and `b` would both be `a___b`.
 */
export const collidingPrefixes = (namespace: string): ReadonlyArray<string> => {
  const prefixes: Array<string> = []
  for (let at = namespace.indexOf(SEPARATOR); at >= 0; at = namespace.indexOf(SEPARATOR, at + 1)) {
    prefixes.push(namespace.slice(0, at))
  }
  return namespace.endsWith("_") ? [...prefixes, namespace.slice(0, -1)] : prefixes
}

/** What an approval channel and a log call the tool: `namespace.raw`. */
export const toolLabel = (namespace: string, raw: string): string => `${namespace}.${raw}`
