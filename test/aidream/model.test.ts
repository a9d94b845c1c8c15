import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { conversation } from "./support/Client.ts"
import { Case, driveTurn } from "./support/driveTurn.ts"
import { diceOf, startModel } from "./support/ModelBackend.ts"

/** One turn against the model. */
const drive = Effect.fnUntraced(function* (
  example: Case,
  options: { readonly faults: number; readonly kills: number }
) {
  const dice = diceOf(example.seed)
  const model = yield* startModel({ iterations: example.iterations, dice, faults: options.faults })
  const { killed } = yield* driveTurn(
    example,
    {
      backend: model.backend,
      conversationId: conversation,
      isCompleted: Effect.sync(() => model.state() === "completed"),
      claims: Effect.sync(() => model.claims()),
      calls: Effect.sync(() =>
        Array.from(model.rows.values(), ({ answers, callId, status }) => ({
          id: callId,
          settled: status === "settled",
          answers
        }))
      ),
      calm: model.calm,
      step: Effect.void
    },
    { dice, kills: options.kills }
  )
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
