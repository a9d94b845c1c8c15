import { Effect, Layer } from "effect"
import { type Migrator, SqlClient, type SqlError } from "effect/sql"
import { BackendConfig } from "./BackendConfig.ts"
import { Ledger } from "./Ledger.ts"
import { claimTurn, conversation, findTurn } from "./sql/claimTurn.ts"
import { migrate } from "./sql/migrations.ts"
import { openTurn } from "./sql/openTurn.ts"
import { desktopInstances, pendingCalls, userPendingCalls } from "./sql/pendingCalls.ts"
import { resolveResults } from "./sql/resolveResults.ts"
import { cancel, delegate, finish, pause, release, renew, settle, step } from "./sql/runTurn.ts"
import * as SqliteClient from "./sql/SqliteClient.ts"
import { makeStore } from "./sql/Store.ts"
import { sweep } from "./sql/sweep.ts"
import { transcript } from "./sql/transcript.ts"

/** The ledger in the database of the context, whose tables are brought up to date first. */
export const layer: Layer.Layer<
  Ledger,
  SqlError.SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | BackendConfig
> = Layer.effect(
  Ledger,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = makeStore(sql, yield* BackendConfig)
    yield* migrate
    return Ledger.of({
      conversation: conversation(store),
      open: openTurn(store),
      find: findTurn(store),
      claim: claimTurn(store),
      transcript: transcript(store),
      renew: renew(store),
      step: step(store),
      settle: settle(store),
      delegate: delegate(store),
      pause: pause(store),
      finish: finish(store),
      release: release(store),
      cancel: cancel(store),
      resolve: resolveResults(store),
      pendingCalls: pendingCalls(store),
      userPendingCalls: userPendingCalls(store),
      desktopInstances: desktopInstances(store),
      sweep: sweep(store)
    })
  })
)

/** The embedded default: SQLite in a file, which several processes of one machine may share. */
export const layerSqlite = (options: SqliteClient.SqliteOptions) =>
  layer.pipe(Layer.provide(SqliteClient.layer(options)))
