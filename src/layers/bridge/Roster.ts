import { sha256 } from "@noble/hashes/sha2.js"
import { Context, Effect, type FileSystem, Layer, Option, Order, type Path, Redacted, Schema, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import type { ClientKey } from "../../domain/bridge/ClientKey.ts"
import { collidingPrefixes, type Namespace } from "../../domain/bridge/ToolName.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import * as RosterFile from "./RosterFile.ts"

/** A client cannot be registered or revoked. The message names the rule. */
export class RosterRefused extends Schema.TaggedError<RosterRefused>()("RosterRefused", { message: Schema.String }) {}

/** One admitted application, without its key. */
export interface RosterClient {
  readonly namespace: Namespace
  /** From the configuration: it can be neither registered anew nor revoked. */
  readonly isStatic: boolean
}

/** What a change of the roster did. */
export interface RosterChange {
  /** Whether the namespace had a key that is no longer valid. */
  readonly displaced: boolean
  /**
   * Namespaces whose key stopped being valid by this change, or by another process
   * that had written the file in between. A session of theirs has to end.
   */
  readonly invalidated: ReadonlyArray<Namespace>
}

interface Entry extends RosterClient {
  readonly digest: string
}

const utf8 = new TextEncoder()

// Keys are compared as digests: the time of a look-up says nothing about a key, and
// no length or character of what was presented can make it fail.
const digestOf = (key: string): string => Hex.encode(sha256(utf8.encode(key)))

/** The admitted clients, by each of the things that only one of them may have. */
class Table {
  readonly byNamespace = new Map<string, Entry>()
  readonly byDigest = new Map<string, Entry>()
  readonly #byPrefix = new Map<string, Entry>()

  add(entry: Entry) {
    this.byNamespace.set(entry.namespace, entry)
    this.byDigest.set(entry.digest, entry)
    for (const prefix of collidingPrefixes(entry.namespace)) this.#byPrefix.set(prefix, entry)
  }

  /** Another client that could get the same public name for a tool. */
  collidingWith(namespace: string): string | undefined {
    const longer = this.#byPrefix.get(namespace)
    if (longer !== undefined) return longer.namespace
    return collidingPrefixes(namespace).find((prefix) => this.byNamespace.has(prefix))
  }
}

const collision = (namespace: string, other: string) =>
  `namespace "${namespace}" collides with "${other}": their tools could get the same public name`

const fromFile = Effect.fnUntraced(function* (records: ReadonlyArray<RosterFile.RosterRecord>) {
  const table = new Table()
  for (const { namespace, key } of records) {
    const malformed = (message: string) => new RosterFile.RosterMalformed({ message })
    const digest = digestOf(Redacted.value(key))
    if (table.byNamespace.has(namespace)) {
      return yield* malformed(`frontend-tools client roster repeats namespace "${namespace}"`)
    }
    const holder = table.byDigest.get(digest)
    if (holder !== undefined) {
      return yield* malformed(
        `frontend-tools client roster gives "${namespace}" a key already held by "${holder.namespace}"`
      )
    }
    const other = table.collidingWith(namespace)
    if (other !== undefined) return yield* malformed(`frontend-tools client roster: ${collision(namespace, other)}`)
    table.add({ namespace, digest, isStatic: false })
  }
  return table
})

const addStatic = Effect.fnUntraced(function* (table: Table, clients: BridgeConfig["Service"]["staticClients"]) {
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

/**
 * Who may connect: the table of namespaces and keys (bridge protocol, part c).
 *
 * Registered clients are kept in `frontend-tools-clients.json` of the state folder,
 * which is whole and readable by its owner only at every instant. A change is in
 * memory only after it is safe in the file. Building the layer fails on a malformed
 * file or a static client that collides.
 */
export class Roster extends Context.Service<
  Roster,
  {
    /** Whose key this is. Takes the same time for every key and any number of clients. */
    readonly authenticate: (key: string) => Effect.Effect<Option.Option<Namespace>>
    /** Binds a key to a namespace. The same key again changes nothing. */
    readonly register: (
      namespace: Namespace,
      key: ClientKey
    ) => Effect.Effect<RosterChange, RosterRefused | RosterFile.RosterFileError>
    /** Forgets a namespace. `displaced` says whether it was there. */
    readonly revoke: (namespace: Namespace) => Effect.Effect<RosterChange, RosterRefused | RosterFile.RosterFileError>
    /** All clients, sorted by namespace. */
    readonly clients: Effect.Effect<ReadonlyArray<RosterClient>>
  }
>()("effect-frontend-tools/layers/bridge/Roster") {
  static readonly layer: Layer.Layer<
    Roster,
    RosterFile.RosterMalformed | RosterFile.RosterFileError,
    BridgeConfig | FileSystem.FileSystem | Path.Path
  > = Layer.effect(
    Roster,
    Effect.gen(function* () {
      const config = yield* BridgeConfig
      const file = yield* RosterFile.make(config.stateDir)
      const changing = Semaphore.makeUnsafe(1)

      const tableOf = (records: ReadonlyArray<RosterFile.RosterRecord>) =>
        Effect.flatMap(fromFile(records), (table) => addStatic(table, config.staticClients))

      let table = yield* Effect.flatMap(file.read, ({ records }) => tableOf(records))

      /** Namespaces of the present table whose key the next one does not accept. */
      const adopt = (next: Table): ReadonlyArray<Namespace> => {
        const invalidated = Array.from(table.byNamespace.values())
          .filter((entry) => next.byNamespace.get(entry.namespace)?.digest !== entry.digest)
          .map((entry) => entry.namespace)
        table = next
        return invalidated
      }

      /** Changes the file as it is now, which another process may have written since. */
      const change = (
        namespace: Namespace,
        edit: (
          current: Table,
          records: ReadonlyArray<RosterFile.RosterRecord>
        ) => Effect.Effect<ReadonlyArray<RosterFile.RosterRecord>, RosterRefused>
      ) =>
        file
          .update((records) => Effect.flatMap(tableOf(records), (current) => edit(current, records)))
          .pipe(
            Effect.flatMap(tableOf),
            Effect.map((next): RosterChange => {
              const had = table.byNamespace.get(namespace)
              const invalidated = adopt(next)
              return { displaced: had !== undefined && invalidated.includes(namespace), invalidated }
            }),
            Effect.catchTag("RosterMalformed", (error) =>
              Effect.fail(new RosterFile.RosterFileError({ message: error.message }))
            ),
            changing.withPermit
          )

      return Roster.of({
        authenticate: (key) =>
          Effect.sync(() => Option.map(Option.fromUndefinedOr(table.byDigest.get(digestOf(key))), (e) => e.namespace)),

        register: (namespace, key) =>
          change(namespace, (current, records) => {
            const digest = digestOf(key)
            const refuse = (message: string) => Effect.fail(new RosterRefused({ message }))
            if (current.byNamespace.get(namespace)?.isStatic === true) {
              return refuse(
                `namespace "${namespace}" is statically configured in cordis.yml; edit the configuration instead of registering`
              )
            }
            const holder = current.byDigest.get(digest)
            if (holder !== undefined && holder.namespace !== namespace) {
              return refuse("key is already registered for another namespace; one credential identifies one client")
            }
            if (holder !== undefined) return Effect.succeed(records)
            const other = current.collidingWith(namespace)
            if (other !== undefined) return refuse(collision(namespace, other))
            return Effect.succeed(RosterFile.withRecord(records, { namespace, key: Redacted.make(key) }))
          }),

        revoke: (namespace) =>
          change(namespace, (current, records) =>
            current.byNamespace.get(namespace)?.isStatic === true
              ? Effect.fail(
                  new RosterRefused({
                    message: `namespace "${namespace}" is statically configured in cordis.yml; remove it from the configuration instead of revoking`
                  })
                )
              : Effect.succeed(records.filter((record) => record.namespace !== namespace))
          ),

        clients: Effect.sync(() =>
          Array.from(table.byNamespace.values(), ({ namespace, isStatic }) => ({ namespace, isStatic })).sort(
            Order.mapInput(Order.String, (client: RosterClient) => client.namespace)
          )
        )
      })
    })
  )
}
