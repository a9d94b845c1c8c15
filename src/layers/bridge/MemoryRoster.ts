import { Effect, Layer, Option } from "effect"
import { BridgeConfig } from "./BridgeConfig.ts"
import { Roster, type RosterChange } from "./Roster.ts"
import type { RosterMalformed } from "./RosterFile.ts"
import { addStatic, digestOf, RosterRefused, RosterTable } from "./RosterTable.ts"

/**
 * A `Roster` without a file, under the same rules: static clients from the settings,
 * and whoever is registered while the program runs. For tests, and for programs that
 * know all their applications.
 *
 * Building it fails on a static client that collides.
 */
export const layer: Layer.Layer<Roster, RosterMalformed, BridgeConfig> = Layer.effect(
  Roster,
  Effect.gen(function* () {
    const { staticClients } = yield* BridgeConfig
    const table = yield* addStatic(new RosterTable(), staticClients)
    const refuse = (message: string) => Effect.fail(new RosterRefused({ message }))
    const unchanged: RosterChange = { displaced: false, invalidated: [] }

    return Roster.of({
      authenticate: (key) =>
        Effect.sync(() => Option.map(Option.fromUndefinedOr(table.byDigest.get(digestOf(key))), (e) => e.namespace)),

      register: (namespace, key) =>
        Effect.suspend(() => {
          const digest = digestOf(key)
          const objection = table.objection(namespace, digest)
          if (objection !== undefined) return refuse(objection)
          if (table.byDigest.has(digest)) return Effect.succeed(unchanged)
          const displaced = table.remove(namespace)
          table.add({ namespace, digest, isStatic: false })
          return Effect.succeed({ displaced, invalidated: displaced ? [namespace] : [] })
        }),

      revoke: (namespace) =>
        Effect.suspend(() => {
          const objection = table.revokeObjection(namespace)
          if (objection !== undefined) return refuse(objection)
          const displaced = table.remove(namespace)
          return Effect.succeed({ displaced, invalidated: displaced ? [namespace] : [] })
        }),

      clients: Effect.sync(() => table.clients())
    })
  })
)
