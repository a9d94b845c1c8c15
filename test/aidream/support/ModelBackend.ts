import { Effect, type Scope } from "effect"
import { type Backend, json, lines, type Received, type Reply, refuse, startBackend, text } from "./Backend.ts"
import { chunk, delegated, end, type Line, phaseComplete, requestReserved, suspendedInfo } from "./events.ts"

/** A number in [0, 1), the next of a seeded row. */
export type Dice = () => number

export const diceOf = (seed: number): Dice => {
  let state = (seed ^ 0x9e3779b9) >>> 0 || 1
  return () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 0x1_0000_0000
  }
}

interface Row {
  readonly callId: string
  /** The run that delegated it. */
  readonly generation: number
  answers: Array<string>
  status: "delegated" | "settled"
}

/** What the backend knows and did: the model the client is held against. */
export interface Model {
  readonly backend: Backend
  readonly rows: ReadonlyMap<string, Row>
  readonly state: () => "processing" | "paused" | "completed"
  /** Resumes that took the turn from paused to processing. */
  readonly claims: () => number
  /** Most resume requests of the turn that were open at once. */
  readonly mostResumesAtOnce: () => number
  /** From now on nothing goes wrong. */
  readonly calm: () => void
}

export interface ModelOptions {
  /** How many calls each iteration delegates before the last one answers. */
  readonly iterations: ReadonlyArray<number>
  readonly dice: Dice
  readonly faults: number
}

/**
 * A backend that follows parts 10.5, 10.6 and 10.8 of the contract for one turn,
 * over a network that loses, cuts, repeats and delays.
 */
export const startModel = Effect.fnUntraced(function* (
  options: ModelOptions
): Effect.fn.Return<Model, never, Scope.Scope> {
  const backend = yield* Effect.orDie(startBackend)
  const { dice } = options
  const rows = new Map<string, Row>()
  let faults = options.faults
  let state: "processing" | "paused" | "completed" = "processing"
  let generation = 0
  let iteration = 0
  let claims = 0
  let resumes = 0
  let mostResumes = 0

  const goesWrong = () => dice() < faults
  const left = () => [...rows.values()].filter((row) => row.status === "delegated")

  /** Runs the model once: its rows are committed before a line of it can be read. */
  const runOnce = (): ReadonlyArray<Line> => {
    generation++
    const calls = options.iterations[iteration++]
    if (calls === undefined) {
      state = "completed"
      return [chunk("the answer"), end()]
    }
    const ids = Array.from({ length: calls }, (_, index) => `call-${iteration}-${index}`)
    for (const callId of ids) rows.set(callId, { callId, generation, answers: [], status: "delegated" })
    const announced = ids.map((callId) => delegated(callId, "work", { id: callId }))
    const repeated = goesWrong() ? announced : []
    return [requestReserved("req-1"), ...announced, ...repeated, phaseComplete, suspendedInfo(...ids), end()]
  }

  /** The stream of a run that just started, and the moment its turn becomes paused. */
  const stream = Effect.suspend((): Reply => {
    const all = runOnce()
    const mine = generation
    const pause = Effect.sync(() => {
      if (state === "processing" && generation === mine) state = "paused"
    })
    const sent = goesWrong() ? all.slice(0, Math.floor(dice() * all.length)) : all
    const late = goesWrong() ? Math.floor(dice() * 40) : 0
    // The run outlives its reader, so its end is no matter of the response.
    return Effect.andThen(
      Effect.forkDetach(Effect.andThen(ticks(late), pause)),
      goesWrong() ? text("lost", 502) : lines(sent)
    )
  })

  const settle = (received: Received) => {
    const resolved: Array<string> = []
    const already: Array<string> = []
    const unknown: Array<string> = []
    for (const result of received.body.results) {
      const row = rows.get(result.call_id)
      if (row === undefined) {
        unknown.push(result.call_id)
        continue
      }
      row.answers.push(JSON.stringify(result))
      ;(row.status === "delegated" ? resolved : already).push(result.call_id)
      row.status = "settled"
    }
    const touched = [...resolved, ...already].flatMap((callId) => rows.get(callId) ?? [])
    const windingDown = touched.some((row) => row.generation === generation)
    return {
      resolved,
      already_resolved: already,
      not_found: unknown,
      continuation_needed:
        touched.length > 0 && left().length === 0 && (state === "paused" || (state === "processing" && windingDown)),
      user_request_id: "req-1",
      conversation_id: received.conversationId
    }
  }

  backend.on("start", () => stream)
  backend.on("tool_results", (received) => {
    if (goesWrong()) return text("not today", 502)
    const body = settle(received)
    if (goesWrong()) return text("lost", 502)
    if (goesWrong()) return text("<html>a portal</html>")
    return Effect.andThen(ticks(goesWrong() ? 20 : 0), json(body))
  })
  backend.on("pending_calls", () => {
    if (goesWrong()) return text("not today", 502)
    return json(
      left().map((row) => ({
        id: `row-${row.callId}`,
        call_id: row.callId,
        conversation_id: "conv-1",
        tool_name: "work",
        user_request_id: "req-1",
        arguments: { id: row.callId }
      }))
    )
  })
  backend.on("resume", () =>
    Effect.suspend(() => {
      resumes++
      mostResumes = Math.max(mostResumes, resumes)
      return Effect.andThen(ticks(Math.floor(dice() * 5)), claim)
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          resumes--
        })
      )
    )
  )

  const claim = Effect.suspend((): Reply => {
    if (goesWrong()) return text("not today", 503)
    const outstanding = left()
    if (outstanding.length > 0) {
      return refuse(409, "outstanding_delegated_calls", {
        outstanding_call_ids: outstanding.map(({ callId }) => callId)
      })
    }
    if (state === "processing") return refuse(409, "resume_conflict", { status: state })
    if (state === "completed") return refuse(409, "not_resumable", { status: state })
    state = "processing"
    claims++
    return stream
  })

  return {
    backend,
    rows,
    state: () => state,
    claims: () => claims,
    mostResumesAtOnce: () => mostResumes,
    calm: () => {
      faults = 0
    }
  }
})

const ticks = (count: number): Effect.Effect<void> =>
  count === 0
    ? Effect.void
    : Effect.andThen(
        Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
        Effect.suspend(() => ticks(count - 1))
      )
