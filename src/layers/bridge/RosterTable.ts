/**
 * The admitted clients and the rules that hold among them (bridge protocol, part c),
 * wherever they are kept.
 */
import { sha256 } from "@noble/hashes/sha2.js"
import { Effect, Order, Redacted, Schema } from "effect"
import { Hex } from "effect/encoding"
import { collidingPrefixes, type Namespace } from "../../domain/bridge/ToolName.ts"
import type { StaticClient } from "./BridgeConfig.ts"
import * as RosterFile from "./RosterFile.ts"

/** A client cannot be registered or revoked. The message names the rule. */
export class RosterRefused extends Schema.TaggedError<RosterRefused>()("RosterRefused", { message: Schema.String }) {}

/** One admitted application, without its key. */
export interface RosterClient {
  readonly namespace: Namespace
  /** From the configuration: it can be neither registered anew nor revoked. */
  readonly isStatic: boolean
}

export interface RosterEntry extends RosterClient {
  readonly digest: string
}

const utf8 = new TextEncoder()

/**
 * What stands for a key. Keys are compared as digests: the time of a look-up says
 * nothing about a key, and no length or character of what was presented can make it
 * fail.
 */
export const digestOf = (key: string): string => Hex.encode(sha256(utf8.encode(key)))

export const collision = (namespace: string, other: string) =>
  `namespace "${namespace}" collides with "${other}": their tools could get the same public name`

/** The admitted clients, by each of the things that only one of them may have. */
export class RosterTable {
  readonly byNamespace = new Map<string, RosterEntry>()
  readonly byDigest = new Map<string, RosterEntry>()
  readonly #byPrefix = new Map<string, RosterEntry>()

  add(entry: RosterEntry) {
    this.byNamespace.set(entry.namespace, entry)
    this.byDigest.set(entry.digest, entry)
    this.#prefix(entry)
  }

  /** Says whether it was there. */
  remove(namespace: Namespace): boolean {
    const entry = this.byNamespace.get(namespace)
    if (entry === undefined) return false
    this.byNamespace.delete(namespace)
    this.byDigest.delete(entry.digest)
    // Several may share a prefix, of which the table knows the last.
    this.#byPrefix.clear()
    for (const other of this.byNamespace.values()) this.#prefix(other)
    return true
  }

  #prefix(entry: RosterEntry) {
    for (const prefix of collidingPrefixes(entry.namespace)) this.#byPrefix.set(prefix, entry)
  }

  /** Another client that could get the same public name for a tool. */
  collidingWith(namespace: string): string | undefined {
    const longer = this.#byPrefix.get(namespace)
    if (longer !== undefined) return longer.namespace
    return collidingPrefixes(namespace).find((prefix) => this.byNamespace.has(prefix))
  }

  /** Why this key cannot be bound to this namespace; nothing when it can, or already is. */
  objection(namespace: Namespace, digest: string): string | undefined {
    if (this.byNamespace.get(namespace)?.isStatic === true) {
      return `namespace "${namespace}" is statically configured in cordis.yml; edit the configuration instead of registering`
    }
    const holder = this.byDigest.get(digest)
    if (holder !== undefined) {
      return holder.namespace === namespace
        ? undefined
        : "key is already registered for another namespace; one credential identifies one client"
    }
    const other = this.collidingWith(namespace)
    return other === undefined ? undefined : collision(namespace, other)
  }

  /** Why this namespace cannot be revoked. */
  revokeObjection(namespace: Namespace): string | undefined {
    return this.byNamespace.get(namespace)?.isStatic === true
      ? `namespace "${namespace}" is statically configured in cordis.yml; remove it from the configuration instead of revoking`
      : undefined
  }

  /** All clients without their keys, sorted by namespace. */
  clients(): ReadonlyArray<RosterClient> {
    return Array.from(this.byNamespace.values(), ({ namespace, isStatic }) => ({ namespace, isStatic })).sort(
      Order.mapInput(Order.String, (client: RosterClient) => client.namespace)
    )
  }
}

/** Adds the clients of the configuration, each of which has to fit beside what is there. */
export const addStatic = Effect.fnUntraced(function* (table: RosterTable, clients: ReadonlyArray<StaticClient>) {
  for (const client of clients) {
    const malformed = (message: string) => new RosterFile.RosterMalformed({ message })
    const namespace = yield* RosterFile.decodeNamespace(client.namespace)
    const key = Redacted.value(client.key)
    if (table.byNamespace.has(namespace)) {
      return yield* malformed(`static client namespace "${namespace}" collides with the registered roster`)
    }
    if (key === "") return yield* malformed(`static client "${namespace}" must carry a non-empty key`)
    const digest = digestOf(key)
    if (table.byDigest.has(digest)) {
      return yield* malformed(`static client "${namespace}" reuses a key already held by another client`)
    }
    const other = table.collidingWith(namespace)
    if (other !== undefined) return yield* malformed(`static client ${collision(namespace, other)}`)
    table.add({ namespace, digest, isStatic: true })
  }
  return table
})
