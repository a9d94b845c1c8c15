import { Layer } from "effect"
import { LiveRuns } from "./LiveRuns.ts"
import * as Routes from "./Routes.ts"
import { RunPreparation } from "./RunPreparation.ts"
import * as Sweeps from "./Sweeps.ts"
import { Turns } from "./Turns.ts"

/**
 * The backend as routes to mount in an `HttpRouter`.
 *
 * Needs what the embedding team decides: `Authentication`, `Agents`, `Models`,
 * `ToolCatalog`, `ServerTools`, `Capabilities`, a `Ledger` and a `BackendConfig`.
 */
export const layer = Layer.mergeAll(Routes.layer, Sweeps.layer).pipe(
  Layer.provide(Turns.layer),
  Layer.provide(Layer.mergeAll(LiveRuns.layer, RunPreparation.layer))
)
