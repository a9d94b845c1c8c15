import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import { Duration, Effect, Layer, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlConnection } from "effect/sql"
import { SqlClient, SqlError, Statement } from "effect/sql"

/** Where the database is and how hard it is written. */
export interface SqliteOptions {
  /** A path, or `:memory:`. */
  readonly filename: string
  /** How long a statement waits for another process that writes. Default 5 seconds. */
  readonly busyTimeout?: Duration.Input | undefined
  /**
   * `full` (default) survives a power cut; `normal` survives the death of a process
   * and costs about a fifth per commit.
   */
  readonly durability?: "full" | "normal" | undefined
}

/** How many prepared statements one connection keeps. */
const STATEMENTS = 256

/**
 * An `effect/sql` client over the SQLite that comes with Node.
 *
 * One connection per client; transactions take the write lock at once, so two
 * processes on one file wait for each other instead of failing half-way.
 */
export const make = Effect.fnUntraced(function* (options: SqliteOptions) {
  // Loaded when it is needed: Node 22 prints a warning about it, and another database needs none of it.
  const sqlite = yield* Effect.promise(() => import("node:sqlite"))
  const db = yield* Effect.acquireRelease(
    Effect.try({
      try: () => open(sqlite.DatabaseSync, options),
      catch: (cause) => new SqlError.SqlError({ reason: classify(cause, "connect") })
    }),
    (opened) => Effect.sync(() => opened.close())
  )

  const statements = new Map<string, StatementSync>()
  const prepare = (sql: string): StatementSync => {
    const known = statements.get(sql)
    if (known !== undefined) {
      statements.delete(sql)
      statements.set(sql, known)
      return known
    }
    const prepared = db.prepare(sql)
    statements.set(sql, prepared)
    if (statements.size > STATEMENTS) {
      for (const oldest of statements.keys()) {
        statements.delete(oldest)
        break
      }
    }
    return prepared
  }

  const attempt = <A>(run: () => A): Effect.Effect<A, SqlError.SqlError> =>
    Effect.try({ try: run, catch: (cause) => new SqlError.SqlError({ reason: classify(cause, "execute") }) })

  const rows = (prepared: StatementSync, params: ReadonlyArray<unknown>) =>
    // Rows come with a null prototype; callers compare and spread them as plain objects.
    prepared.all(...params.map(bindable)).map((row) => ({ ...row }))

  // Arrays, so that two columns of one name both survive; never on a statement `rows` shares.
  const values = (sql: string, params: ReadonlyArray<unknown>): ReadonlyArray<ReadonlyArray<unknown>> => {
    const prepared = db.prepare(sql)
    prepared.setReturnArrays(true)
    return prepared.all(...params.map(bindable)).map((row) => Object.values(row))
  }

  const connection: SqlConnection.Connection = {
    execute: (sql, params, transform) =>
      attempt(() => {
        const found = rows(prepare(sql), params)
        return transform === undefined ? found : transform(found)
      }),
    executeRaw: (sql, params) => attempt(() => rows(prepare(sql), params)),
    executeStream: (sql, params, transform) =>
      Stream.fromIterableEffect(
        attempt(() => {
          const found = rows(prepare(sql), params)
          return transform === undefined ? found : transform(found)
        })
      ),
    executeValues: (sql, params) => attempt(() => values(sql, params)),
    executeValuesUnprepared: (sql, params) => attempt(() => values(sql, params)),
    executeUnprepared: (sql, params, transform) =>
      attempt(() => {
        const found = rows(db.prepare(sql), params)
        return transform === undefined ? found : transform(found)
      })
  }

  return yield* SqlClient.make({
    ...SqlClient.makeSqliteAcquirers({
      connection: Effect.succeed(connection),
      semaphore: yield* Semaphore.make(1),
      isTransaction: () => db.isTransaction
    }),
    compiler: Statement.makeCompilerSqlite(),
    driver: "sqlite",
    spanAttributes: [["db.system.name", "sqlite"]],
    prepareTransactionControls: true,
    beginTransaction: "BEGIN IMMEDIATE"
  })
})

/** The client as a layer. */
export const layer = (options: SqliteOptions): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

const open = (Database: typeof DatabaseSync, options: SqliteOptions): DatabaseSync => {
  const db = new Database(options.filename, {
    timeout: Duration.toMillis(options.busyTimeout ?? Duration.seconds(5)),
    enableForeignKeyConstraints: true
  })
  db.exec("PRAGMA journal_mode = WAL")
  db.exec(`PRAGMA synchronous = ${options.durability === "normal" ? "NORMAL" : "FULL"}`)
  return db
}

const bindable = (value: unknown): SQLInputValue => {
  if (value === undefined || value === null) return null
  if (typeof value === "boolean") return value ? 1 : 0
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") return value
  if (value instanceof Uint8Array) return value
  throw new TypeError(`a ${typeof value} cannot be a parameter of a statement`)
}

// Node reports SQLite's extended result code as `errcode`; the classifier reads `errno`.
const classify = (cause: unknown, operation: string): SqlError.SqlErrorReason => {
  const errno = cause instanceof Error && "errcode" in cause ? cause.errcode : undefined
  const message = cause instanceof Error ? cause.message : "the database failed"
  return SqlError.classifySqliteError(Object.assign(new Error(message, { cause }), { errno }), { message, operation })
}
