import { Effect, Layer } from "effect"
import { BackendConfig } from "./BackendConfig.ts"
import { Ledger } from "./Ledger.ts"

/** Sweeps the ledger from time to time. Any number of processes may do it at once. */
export const layer: Layer.Layer<never, never, BackendConfig | Ledger> = Layer.effectDiscard(
  Effect.gen(function* () {
    const { sweepInterval } = yield* BackendConfig
    const ledger = yield* Ledger
    yield* ledger.sweep.pipe(
      Effect.tap((report) =>
        report.expiredCalls + report.lapsedRuns + report.abandonedCalls > 0
          ? Effect.logInfo("swept the ledger", report)
          : Effect.void
      ),
      Effect.catch((failure) => Effect.logWarning("the ledger was not swept", failure.cause)),
      Effect.andThen(Effect.sleep(sweepInterval)),
      Effect.forever,
      Effect.forkScoped
    )
  })
)
