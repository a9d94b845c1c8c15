import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { makeTool } from "../../src/aidream.ts"
import { agent, type Client, conversation, startClient, storeOf, type Watched, watch } from "./support/Client.ts"
import { diceOf, startModel } from "./support/ModelBackend.ts"

const Case = Schema.Struct({
  seed: Schema.Int,
  iterations: Schema.NonEmptyArray(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 }))).check(
    Schema.isMaxLength(3)
  )
})

/** Steps of one second before the network turns good, and after. */
const ROUGH_STEPS = 40
const CALM_STEPS = 120

/**
 * Drives one turn against the model until it is completed, reopening it when the client
 * has come to rest and, if `kills`, now and then killing the client.
 */
const drive = Effect.fnUntraced(function* (
  example: typeof Case.Type,
  options: { readonly faults: number; readonly kills: number }
) {
  const dice = diceOf(example.seed)
  const model = yield* startModel({ iterations: example.iterations, dice, faults: options.faults })
  const disk = new Map<string, string>()
  const runs = new Map<string, number>()
  const work = makeTool({
    name: "work",
    tier: "read",
    parameters: Schema.Struct({ id: Schema.String }),
    run: ({ id }) =>
      Effect.suspend(() => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        return Effect.as(dice() < 0.5 ? Effect.void : Effect.sleep(dice() * 3000), `result of ${id}`)
      })
  })

  let store = disk
  let scope = yield* Scope.make()
  let killed = 0
  let client: Client
  let turn: Watched

  const born = Effect.gen(function* () {
    client = yield* startClient(model.backend, { tools: [work], store: storeOf(store) }).pipe(Scope.provide(scope))
  })
  const reopen = Effect.gen(function* () {
    turn = yield* watch(client.runs.open(conversation)).pipe(Scope.provide(scope))
  })

  yield* born
  turn = yield* watch(
    client!.runs.run({ agentId: agent, message: "hi", conversationId: conversation, isNew: true })
  ).pipe(Scope.provide(scope))

  for (let step = 0; step < ROUGH_STEPS + CALM_STEPS; step++) {
    if (step === ROUGH_STEPS) model.calm()
    yield* model.backend.fence
    if (dice() < options.kills && step < ROUGH_STEPS) {
      store = new Map(store)
      yield* Scope.close(scope, Exit.void)
      scope = yield* Scope.make()
      killed++
      yield* born
      yield* client!.runs.recover
      yield* reopen
    }
    const rests = turn.outcome() !== undefined || turn.error !== undefined
    if (rests && model.state() === "completed") break
    if (rests) yield* reopen
    yield* TestClock.adjust("1 second")
  }
  yield* model.backend.fence
  yield* Scope.close(scope, Exit.void)

  const calls = example.iterations.reduce((sum, count) => sum + count, 0)
  assert.strictEqual(model.state(), "completed", "nothing is lost: the turn ends")
  assert.strictEqual(model.rows.size, calls)
  assert.strictEqual(model.claims(), example.iterations.length, "every suspension is resumed once")
  for (const row of model.rows.values()) {
    assert.strictEqual(row.status, "settled", `${row.callId} is answered`)
    assert.isAtMost(runs.get(row.callId) ?? 0, 1, `${row.callId} ran at most once`)
    if (killed === 0) {
      assert.strictEqual(runs.get(row.callId), 1, `${row.callId} ran`)
      assert.strictEqual(new Set(row.answers).size, 1, `${row.callId} has one answer, however often it was posted`)
      assert.include(row.answers[0], `result of ${row.callId}`)
    }
  }
  if (killed === 0) assert.isAtMost(model.mostResumesAtOnce(), 1, "no two resumes at once")
})

describe("against a model of the backend", () => {
  it.effect.prop("a good network", [Case], ([example]) => drive(example, { faults: 0, kills: 0 }), {
    timeout: 60_000,
    arbitrary: { runs: 15 }
  })

  it.effect.prop(
    "a network that loses, cuts, repeats and delays",
    [Case],
    ([example]) => drive(example, { faults: 0.25, kills: 0 }),
    {
      timeout: 120_000,
      arbitrary: { runs: 40 }
    }
  )

  it.effect.prop(
    "the same, and a client that is killed",
    [Case],
    ([example]) => drive(example, { faults: 0.15, kills: 0.08 }),
    {
      timeout: 120_000,
      arbitrary: { runs: 30 }
    }
  )
})
