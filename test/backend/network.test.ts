/** The client's promise on the real backend: over a bad network, with clients and backends that die. */
import { describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Schema, Scope } from "effect"
import { HttpServer } from "effect/http"
import { SqlClient } from "effect/sql"
import { ConversationId, JsonObject } from "../../src/aidream.ts"
import * as LoopbackServer from "../../src/layers/backend/LoopbackServer.ts"
import * as ScriptedModel from "../../src/layers/backend/ScriptedModel.ts"
import * as SqliteClient from "../../src/layers/backend/sql/SqliteClient.ts"
import { Case, driveTurn, type World } from "../aidream/support/driveTurn.ts"
import { type Dice, diceOf } from "../aidream/support/ModelBackend.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { type Mishap, makeBadWire } from "./support/badWire.ts"

const mishaps: ReadonlyArray<Mishap> = ["lost", "unheard", "gateway", "portal", "cut"]

const Arguments = Schema.fromJsonString(JsonObject)

const startWorld = Effect.fnUntraced(function* (
  example: Case,
  options: { readonly dice: Dice; readonly faults: number; readonly restarts: number }
) {
  const { dice } = options
  const filename = `${yield* temporaryFolder}/ledger.db`
  const outer = yield* Effect.scope
  let calm = false
  let port = 0
  let life = yield* Scope.fork(outer)

  const model = ScriptedModel.layer(({ step }) => {
    const count = example.iterations[step]
    if (count === undefined) return { text: "the answer" }
    const calls = Array.from({ length: count }, (_, index) => ({
      tool: "work",
      arguments: { id: `call-${step}-${index}` }
    }))
    return { calls }
  })
  const boot = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(
      Layer.fresh(LoopbackServer.layer({ port, database: { filename, durability: "normal" }, model })),
      life
    )
    const { address } = Context.get(context, HttpServer.HttpServer)
    port = "port" in address ? address.port : 0
  })
  yield* boot

  const wire = yield* makeBadWire({
    port: () => port,
    mishap: () =>
      !calm && dice() < options.faults ? (mishaps[Math.floor(dice() * mishaps.length)] ?? "lost") : "none",
    at: dice
  })
  const sql = Context.get(yield* Layer.build(SqliteClient.layer({ filename })), SqlClient.SqlClient)

  const world: World = {
    backend: wire,
    conversationId: ConversationId.make(globalThis.crypto.randomUUID()),
    isCompleted: sql`SELECT status FROM user_requests`.pipe(
      Effect.map((rows) => rows.length === 1 && rows[0]?.status === "completed"),
      Effect.orDie
    ),
    // Each run but the first took a claim.
    claims: sql`SELECT COUNT(*) AS runs FROM runs`.pipe(
      Effect.map((rows) => Number(rows[0]?.runs) - 1),
      Effect.orDie
    ),
    calls: sql<{
      readonly arguments: string
      readonly status: string
      readonly output: string | null
      readonly error_message: string | null
    }>`SELECT arguments, status, output, error_message FROM tool_calls`.pipe(
      Effect.map((rows) =>
        rows.map((row) => ({
          id: String(Schema.decodeUnknownSync(Arguments)(row.arguments).id),
          settled: row.status === "completed" || row.status === "error",
          answers: [row.output ?? row.error_message ?? ""]
        }))
      ),
      Effect.orDie
    ),
    calm: () => {
      calm = true
    },
    step: Effect.suspend(() =>
      dice() < options.restarts
        ? Effect.gen(function* () {
            yield* Scope.close(life, Exit.void)
            life = yield* Scope.fork(outer)
            yield* Effect.orDie(boot)
          })
        : Effect.void
    )
  }
  return world
})

const drive = Effect.fnUntraced(function* (
  example: Case,
  options: { readonly faults: number; readonly kills: number; readonly restarts: number }
) {
  const dice = diceOf(example.seed)
  const world = yield* startWorld(example, { dice, ...options })
  yield* driveTurn(example, world, { dice, kills: options.kills })
}, Effect.scoped)

describe("the client's promise on the real backend", () => {
  it.effect.prop("a good network", [Case], ([example]) => drive(example, { faults: 0, kills: 0, restarts: 0 }), {
    timeout: 60_000,
    arbitrary: { runs: 4 }
  })

  it.effect.prop(
    "a network that loses, cuts and lies",
    [Case],
    ([example]) => drive(example, { faults: 0.25, kills: 0, restarts: 0 }),
    { timeout: 120_000, arbitrary: { runs: 24 } }
  )

  it.effect.prop(
    "the same, with clients that die and backends that restart",
    [Case],
    ([example]) => drive(example, { faults: 0.15, kills: 0.06, restarts: 0.04 }),
    { timeout: 120_000, arbitrary: { runs: 24 } }
  )
})
