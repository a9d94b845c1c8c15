import { Cause, Context, Duration, Effect, Exit, type Fiber, FiberSet, Layer, Option } from "effect"
import type { UserRequestId } from "../../domain/aidream/Ids.ts"
import { BackendConfig } from "./BackendConfig.ts"
import { LedgerFailure, RunLost } from "./Ledger.ts"
import { RunFailure } from "./RunFailure.ts"
import { type RunInput, runTurn } from "./RunLoop.ts"

interface LiveRun {
  readonly userRequestId: UserRequestId
  isCancelled: boolean
  /** Whether the turn is about to leave this run, so that nothing prolongs its lease. */
  isWindingDown: boolean
  fiber: Fiber.Fiber<void> | undefined
}

/**
 * The runs of this process.
 *
 * A run belongs to this service's scope, not to the request that opened it: a reader
 * that disconnects leaves it alone. When the scope closes, every run gives its turn
 * back, so that it can be resumed elsewhere at once.
 */
export class LiveRuns extends Context.Service<
  LiveRuns,
  {
    readonly start: (input: Omit<RunInput, "windDown">) => Effect.Effect<void>
    /** Stops the runs of a turn that the ledger already calls cancelled. */
    readonly stop: (userRequestId: UserRequestId) => Effect.Effect<void>
    /** How many runs are open here. */
    readonly count: Effect.Effect<number>
  }
>()("effect-frontend-tools/layers/backend/LiveRuns") {
  static readonly layer = Layer.effect(
    LiveRuns,
    Effect.gen(function* () {
      const config = yield* BackendConfig
      const heartbeat = Duration.toMillis(config.heartbeat)
      const fibers = yield* FiberSet.make<void>()
      const fork = yield* FiberSet.runtime(fibers)<never>()
      const live = new Set<LiveRun>()

      const pulse = Effect.fnUntraced(function* (run: LiveRun, { journal, stream }: Omit<RunInput, "windDown">) {
        for (let seq = 1; ; seq++) {
          yield* Effect.sleep(heartbeat)
          stream.emit({ _tag: "heartbeat", data: { seq } })
          if (run.isWindingDown) continue
          yield* journal.renew.pipe(
            // The lease outlasts a few failed beats.
            Effect.catchTag("LedgerFailure", (error) => Effect.logWarning("a run's lease was not prolonged", error)),
            // The turn ended in the meantime, by this run's own doing.
            Effect.catchTag("RunLost", (lost) => (run.isWindingDown ? Effect.void : Effect.fail(lost)))
          )
        }
      })

      const work = (run: LiveRun, input: Omit<RunInput, "windDown">) =>
        Effect.raceFirst(
          runTurn({
            ...input,
            windDown: () => {
              run.isWindingDown = true
            }
          }),
          pulse(run, input)
        ).pipe(
          Effect.asVoid,
          Effect.onExit((exit) => (Exit.isFailure(exit) ? settle(run, input, exit.cause) : Effect.void)),
          Effect.catchCause(() => Effect.void),
          Effect.ensuring(
            Effect.sync(() => {
              live.delete(run)
              input.stream.end()
            })
          ),
          Effect.annotateLogs({ run: input.key.runId, conversation: input.key.conversationId })
        )

      return LiveRuns.of({
        start: (input) =>
          Effect.sync(() => {
            const run: LiveRun = {
              userRequestId: input.key.userRequestId,
              isCancelled: false,
              isWindingDown: false,
              fiber: undefined
            }
            live.add(run)
            run.fiber = fork(work(run, input))
          }),
        stop: (userRequestId) =>
          Effect.sync(() => {
            for (const run of Array.from(live)) {
              if (run.userRequestId !== userRequestId) continue
              run.isCancelled = true
              run.fiber?.interruptUnsafe()
            }
          }),
        count: Effect.sync(() => live.size)
      })
    })
  )
}

/** Leaves the turn in a state somebody can go on from, and ends the stream accordingly. */
const settle = Effect.fnUntraced(function* (
  run: LiveRun,
  input: Omit<RunInput, "windDown">,
  cause: Cause.Cause<RunLost | LedgerFailure | RunFailure>
) {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (run.isCancelled || (error instanceof RunLost && error.status === "cancelled")) return endCancelled(input)
  if (error instanceof RunLost) {
    return endFailed(input, "run_superseded", "another run has taken this turn over")
  }
  if (error instanceof LedgerFailure) {
    yield* Effect.logError("a run lost its ledger", cause)
    // Nothing is known to be wrong with the turn itself, so it stays resumable.
    yield* Effect.ignore(input.journal.release)
    return endFailed(input, "persistence_error", "the run could not be written down")
  }
  if (error === undefined && Cause.hasInterruptsOnly(cause)) {
    // No end event: the reader knows a cut stream by it, and keeps what it owes.
    return yield* Effect.ignore(input.journal.release)
  }
  const failed = error ?? new RunFailure({ type: "internal_error", text: "the run crashed; the server's log says why" })
  if (error === undefined) yield* Effect.logError("a run crashed", cause)
  yield* input.journal
    .finish({ status: "failed", step: undefined, metadata: { status: "failed", error_type: failed.type } })
    .pipe(Effect.ignore({ log: true }))
  endFailed(input, failed.type, failed.text)
})

const endCancelled = ({ key, stream }: Omit<RunInput, "windDown">) => {
  stream.emit({
    _tag: "completion",
    data: { operation: "user_request", operation_id: key.userRequestId, status: "cancelled" }
  })
  stream.emit({ _tag: "end", data: { reason: "cancelled" } })
}

const endFailed = ({ key, stream }: Omit<RunInput, "windDown">, type: string, text: string) => {
  stream.emit({
    _tag: "error",
    data: {
      error_type: type,
      code: type,
      message: text,
      user_message: "Something went wrong while answering. Please try again."
    }
  })
  stream.emit({
    _tag: "completion",
    data: { operation: "user_request", operation_id: key.userRequestId, status: "failed" }
  })
  stream.emit({ _tag: "end", data: { reason: "failed" } })
}
