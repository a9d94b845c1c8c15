import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import * as SqliteClient from "../../src/layers/backend/sql/SqliteClient.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const memory = SqliteClient.layer({ filename: ":memory:" })

const table = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE t (id TEXT PRIMARY KEY, n BIGINT, UNIQUE (n))`
  return sql
})

describe("SqliteClient", () => {
  it.effect("commits what succeeds, rolls back what fails or is interrupted", () =>
    Effect.gen(function* () {
      const sql = yield* table
      yield* sql.withTransaction(sql`INSERT INTO t ${sql.insert({ id: "a", n: 1 })}`)
      yield* sql
        .withTransaction(Effect.andThen(sql`INSERT INTO t ${sql.insert({ id: "b", n: 2 })}`, Effect.fail("no")))
        .pipe(Effect.exit)
      const fiber = yield* sql
        .withTransaction(Effect.andThen(sql`INSERT INTO t ${sql.insert({ id: "c", n: 3 })}`, Effect.never))
        .pipe(Effect.forkChild({ startImmediately: true }))
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* sql`SELECT * FROM t`, [{ id: "a", n: 1 }])
    }).pipe(Effect.provide(memory))
  )

  it.effect("other fibers wait for a transaction; a nested one is a savepoint", () =>
    Effect.gen(function* () {
      const sql = yield* table
      const inside: Array<string> = []
      const fiber = yield* sql
        .withTransaction(
          Effect.gen(function* () {
            yield* sql`INSERT INTO t ${sql.insert({ id: "a", n: 1 })}`
            yield* Effect.yieldNow
            yield* Effect.exit(
              sql.withTransaction(
                Effect.andThen(sql`INSERT INTO t ${sql.insert({ id: "b", n: 2 })}`, Effect.fail("no"))
              )
            )
            inside.push("done")
          })
        )
        .pipe(Effect.forkChild({ startImmediately: true }))
      const rows = yield* sql`SELECT id FROM t`
      assert.deepStrictEqual([inside, rows], [["done"], [{ id: "a" }]])
      yield* Fiber.join(fiber)
    }).pipe(Effect.provide(memory))
  )

  it.effect("says what kind of failure it was", () =>
    Effect.gen(function* () {
      const sql = yield* table
      yield* sql`INSERT INTO t ${sql.insert({ id: "a", n: 1 })}`
      const twice = yield* Effect.flip(sql`INSERT INTO t ${sql.insert({ id: "b", n: 1 })}`)
      assert.strictEqual(twice.reason._tag, "UniqueViolation")
      const nonsense = yield* Effect.flip(sql`SELECT ${{ not: "bindable" }}`)
      assert.strictEqual(nonsense.reason._tag, "UnknownError")
    }).pipe(Effect.provide(memory))
  )

  it.effect("reads rows as objects, as arrays and as a stream", () =>
    Effect.gen(function* () {
      const sql = yield* table
      yield* sql`INSERT INTO t ${sql.insert([
        { id: "a", n: 1 },
        { id: "b", n: null }
      ])}`
      const query = sql`SELECT id, n, n FROM t ORDER BY id`
      assert.deepStrictEqual(yield* query, [
        { id: "a", n: 1 },
        { id: "b", n: null }
      ])
      assert.deepStrictEqual(yield* query.values, [
        ["a", 1, 1],
        ["b", null, null]
      ])
      assert.strictEqual((yield* Stream.runCollect(query.stream)).length, 2)
    }).pipe(Effect.provide(memory))
  )

  it.effect("keeps a file for the next process, and closes it with its scope", () =>
    Effect.gen(function* () {
      const filename = `${yield* temporaryFolder}/kept.db`
      yield* table.pipe(
        Effect.andThen((sql) => sql`INSERT INTO t ${sql.insert({ id: "a", n: 1 })}`),
        Effect.provide(SqliteClient.layer({ filename }))
      )
      const rows = yield* SqlClient.SqlClient.use((sql) => sql`SELECT id FROM t`).pipe(
        Effect.provide(SqliteClient.layer({ filename }))
      )
      assert.deepStrictEqual(rows, [{ id: "a" }])
    })
  )

  it.effect("a path that cannot be opened is a connection failure", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Layer.build(SqliteClient.layer({ filename: "/nowhere/at/all.db" })))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(JSON.stringify(exit), "ConnectionError")
    })
  )
})
