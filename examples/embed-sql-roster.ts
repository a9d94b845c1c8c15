import { createHash } from "node:crypto"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import {
  Bridge,
  BridgeConfig,
  BridgeServer,
  ClientKey,
  collidingPrefixes,
  MemoryHost,
  Namespace,
  Roster,
  type RosterChange,
  RosterFileError,
  RosterRefused,
  WebSocketListener
} from "effect-frontend-tools"
import { SqliteClient } from "effect-frontend-tools/backend"

/** A database that can be read holds no key that opens anything. */
const digestOf = (key: string) => createHash("sha256").update(key).digest("hex")

const decodeRows = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ namespace: Namespace })))

/** Who may connect, in a table that other programs can read. */
const SqlRoster = Layer.effect(
  Roster,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE IF NOT EXISTS clients (namespace TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE)`

    const namespaces = (rows: Effect.Effect<ReadonlyArray<unknown>, unknown>) =>
      rows.pipe(
        Effect.flatMap(decodeRows),
        Effect.map((clients) => clients.map(({ namespace }) => namespace))
      )
    const all = namespaces(sql`SELECT namespace FROM clients ORDER BY namespace`)
    const holders = (digest: string) => namespaces(sql`SELECT namespace FROM clients WHERE digest = ${digest}`)

    /** One transaction per change; what the database says goes to the log, not to the model. */
    const change = <E>(edit: Effect.Effect<RosterChange, E>) =>
      sql.withTransaction(edit).pipe(
        Effect.tapError((error) => (error instanceof RosterRefused ? Effect.void : Effect.logError(error))),
        Effect.mapError((error) =>
          error instanceof RosterRefused ? error : new RosterFileError({ message: "the database failed" })
        )
      )
    const replaced = (namespace: Namespace, displaced: boolean): RosterChange => ({
      displaced,
      invalidated: displaced ? [namespace] : []
    })

    return Roster.of({
      authenticate: (key) =>
        Effect.orDie(Effect.map(holders(digestOf(key)), (found) => Option.fromUndefinedOr(found[0]))),

      register: (namespace, key) =>
        change(
          Effect.gen(function* () {
            const digest = digestOf(key)
            const [holder] = yield* holders(digest)
            if (holder === namespace) return replaced(namespace, false)
            if (holder !== undefined) return yield* new RosterRefused({ message: "another client has this key" })
            const others = yield* all
            const near = others.find(
              (other) => collidingPrefixes(other).includes(namespace) || collidingPrefixes(namespace).includes(other)
            )
            if (near !== undefined) return yield* new RosterRefused({ message: `"${namespace}" is too near "${near}"` })
            yield* sql`INSERT INTO clients ${sql.insert({ namespace, digest })}
              ON CONFLICT (namespace) DO UPDATE SET digest = excluded.digest`
            return replaced(namespace, others.includes(namespace))
          })
        ),

      revoke: (namespace) =>
        change(
          Effect.gen(function* () {
            const others = yield* all
            yield* sql`DELETE FROM clients WHERE namespace = ${namespace}`
            return replaced(namespace, others.includes(namespace))
          })
        ),

      clients: all.pipe(
        Effect.map((found) => found.map((namespace) => ({ namespace, isStatic: false }))),
        Effect.orDie
      )
    })
  })
)

const program = Effect.gen(function* () {
  const roster = yield* Roster
  // A key in the environment is admitted, and stays so for the next start.
  const key = yield* Config.option(Config.Redacted("TODO_KEY"))
  if (Option.isSome(key)) yield* roster.register(Namespace.make("todo"), ClientKey.make(Redacted.value(key.value)))
  const admitted = yield* roster.clients
  const { url } = yield* WebSocketListener
  const { events } = yield* BridgeServer
  yield* Console.log(`${admitted.map(({ namespace }) => namespace).join(", ")} may connect to ${url}`)
  yield* Stream.runForEach(events, (event) => Console.log(JSON.stringify(event)))
})

const Database = Layer.unwrap(
  Effect.map(Config.withDefault(Config.String("DATABASE"), "clients.sqlite"), (filename) =>
    SqliteClient.layer({ filename })
  )
)

program.pipe(
  Effect.provide(
    Bridge.layerNoRoster.pipe(
      Layer.provideMerge(SqlRoster),
      Layer.provide([MemoryHost.layer(), BridgeConfig.layerConfig, Database])
    )
  ),
  NodeRuntime.runMain
)
