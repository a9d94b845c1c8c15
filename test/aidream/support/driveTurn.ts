import { assert } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { type ConversationId, makeTool } from "../../../src/aidream.ts"
import type { Backend } from "./Backend.ts"
import { agent, type Client, startClient, storeOf, type Watched, watch } from "./Client.ts"
import type { Dice } from "./ModelBackend.ts"

/** How many calls each iteration of a turn hands out before its last one answers. */
export const Case = Schema.Struct({
  seed: Schema.Int,
  iterations: Schema.NonEmptyArray(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 }))).check(
    Schema.isMaxLength(3)
  )
})
export type Case = typeof Case.Type

/** A call as the backend knows it in the end. */
export interface Settled {
  /** The `id` among its arguments. */
  readonly id: string
  readonly settled: boolean
  /** Every answer it was given, as JSON; one when the backend keeps only the first. */
  readonly answers: ReadonlyArray<string>
}

/** A backend with one turn of tool `work`, over a network that may be bad. */
export interface World {
  readonly backend: Pick<Backend, "fence" | "url">
  readonly conversationId: ConversationId
  readonly isCompleted: Effect.Effect<boolean>
  /** Resumes that took the turn from paused to processing. */
  readonly claims: Effect.Effect<number>
  readonly calls: Effect.Effect<ReadonlyArray<Settled>>
  /** From now on nothing goes wrong. */
  readonly calm: () => void
  /** Something may happen to the backend itself. */
  readonly step: Effect.Effect<void>
}

/** Steps of one second before the network turns good, and after. */
const ROUGH_STEPS = 40
const CALM_STEPS = 120

/**
 * Drives one turn until it is completed, reopening it when the client has come to rest
 * and, if `kills`, now and then killing the client. Then holds both sides to the promise:
 * nothing lost, each suspension resumed once, each call run at most once and answered once.
 */
export const driveTurn = Effect.fnUntraced(function* (
  example: Case,
  world: World,
  options: { readonly dice: Dice; readonly kills: number }
) {
  const { dice } = options
  const { conversationId } = world
  const runs = new Map<string, number>()
  const work = makeTool({
    name: "work",
    tier: "read",
    announce: true,
    parameters: Schema.Struct({ id: Schema.String }),
    run: ({ id }) =>
      Effect.suspend(() => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        return Effect.as(dice() < 0.5 ? Effect.void : Effect.sleep(dice() * 3000), `result of ${id}`)
      })
  })

  let store = new Map<string, string>()
  let scope = yield* Scope.make()
  let killed = 0

  const born = Effect.suspend(() =>
    startClient(world.backend, { tools: [work], store: storeOf(store) }).pipe(Scope.provide(scope))
  )
  const reopen = (of: Client) => watch(of.runs.open(conversationId)).pipe(Scope.provide(scope))
  // A request that never arrived is never repeated by the client itself: whoever sent it decides.
  const send = (of: Client) =>
    watch(of.runs.run({ agentId: agent, message: "hi", conversationId, isNew: true })).pipe(Scope.provide(scope))

  let client = yield* born
  let turn: Watched = yield* send(client)

  for (let step = 0; step < ROUGH_STEPS + CALM_STEPS; step++) {
    if (step === ROUGH_STEPS) world.calm()
    yield* world.backend.fence
    if (step < ROUGH_STEPS) yield* world.step
    if (dice() < options.kills && step < ROUGH_STEPS) {
      store = new Map(store)
      yield* Scope.close(scope, Exit.void)
      scope = yield* Scope.make()
      killed++
      client = yield* born
      yield* client.runs.recover
      turn = yield* reopen(client)
    }
    const rests = turn.outcome() !== undefined || turn.error !== undefined
    if (rests && (yield* world.isCompleted)) break
    if (rests) {
      const refused = turn.error?.reason
      const unknown = refused?._tag === "Refused" && refused.error.code === "conversation_not_found"
      turn = yield* unknown ? send(client) : reopen(client)
    }
    yield* TestClock.adjust("1 second")
  }
  yield* world.backend.fence
  const last = turn.events.map(({ _tag }) => _tag).slice(-12)
  yield* Scope.close(scope, Exit.void)

  assert.isTrue(yield* world.isCompleted, `nothing is lost: the turn ends; last ${last.join(" ")} ${turn.error ?? ""}`)
  const calls = yield* world.calls
  assert.strictEqual(
    calls.length,
    example.iterations.reduce((sum, count) => sum + count, 0)
  )
  assert.strictEqual(yield* world.claims, example.iterations.length, "every suspension is resumed once")
  for (const { answers, id, settled } of calls) {
    assert.isTrue(settled, `${id} is answered`)
    assert.isAtMost(runs.get(id) ?? 0, 1, `${id} ran at most once`)
    if (killed === 0) {
      assert.strictEqual(runs.get(id), 1, `${id} ran`)
      assert.strictEqual(new Set(answers).size, 1, `${id} has one answer, however often it was posted`)
      assert.include(answers[0], `result of ${id}`)
    }
  }
  return { killed }
})
