import { Context, Effect, type FileSystem, Layer, Option, type Path, Redacted, Semaphore } from "effect"
import type { ClientKey } from "../../domain/bridge/ClientKey.ts"
import type { Namespace } from "../../domain/bridge/ToolName.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import * as RosterFile from "./RosterFile.ts"
import { addStatic, collision, digestOf, type RosterClient, RosterRefused, RosterTable } from "./RosterTable.ts"

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

const fromFile = Effect.fnUntraced(function* (records: ReadonlyArray<RosterFile.RosterRecord>) {
  const table = new RosterTable()
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

/**
 * Who may connect: the table of namespaces and keys (bridge protocol, part c).
 *
 * A program may keep it anywhere: provide a service of this shape to
 * `Bridge.layerNoRoster`. `MemoryRoster` forgets it at the end.
 *
 * `layer` keeps registered clients in `frontend-tools-clients.json` of the state folder,
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
      const adopt = (next: RosterTable): ReadonlyArray<Namespace> => {
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
          current: RosterTable,
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
            const objection = current.objection(namespace, digest)
            if (objection !== undefined) return Effect.fail(new RosterRefused({ message: objection }))
            return Effect.succeed(
              current.byDigest.has(digest)
                ? records
                : RosterFile.withRecord(records, { namespace, key: Redacted.make(key) })
            )
          }),

        revoke: (namespace) =>
          change(namespace, (current, records) => {
            const objection = current.revokeObjection(namespace)
            return objection === undefined
              ? Effect.succeed(records.filter((record) => record.namespace !== namespace))
              : Effect.fail(new RosterRefused({ message: objection }))
          }),

        clients: Effect.sync(() => table.clients())
      })
    })
  )
}
