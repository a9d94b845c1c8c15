import { Layer } from "effect"
import { ActiveTools } from "./ActiveTools.ts"
import { AgentRuns } from "./AgentRuns.ts"
import { AidreamApi } from "./AidreamApi.ts"
import { AidreamConfig } from "./AidreamConfig.ts"
import { Approvals } from "./Approvals.ts"
import { CallGates } from "./CallGates.ts"
import { CallJournal } from "./CallJournal.ts"
import { Capabilities, type CapabilitiesOptions } from "./Capabilities.ts"
import { Continuations } from "./Continuations.ts"
import { Conversations } from "./Conversations.ts"
import { DelegationDispatcher } from "./DelegationDispatcher.ts"
import { LocalPolicy } from "./LocalPolicy.ts"
import { Obligations } from "./Obligations.ts"
import { ResultsFunnel } from "./ResultsFunnel.ts"
import { RunFollower } from "./RunFollower.ts"
import { RunRecords } from "./RunRecords.ts"
import { ToolLibrary } from "./ToolLibrary.ts"

/** Everything of the outbound half but its seams: config, library and policy come from outside. */
export const layerNoDeps = (capabilities?: CapabilitiesOptions) =>
  AgentRuns.layer.pipe(
    Layer.provideMerge(RunFollower.layer),
    Layer.provideMerge(DelegationDispatcher.layer),
    Layer.provideMerge(CallGates.layer),
    Layer.provideMerge(ResultsFunnel.layer),
    Layer.provideMerge(Continuations.layer),
    Layer.provideMerge(Capabilities.layer(capabilities)),
    Layer.provideMerge(
      Layer.mergeAll(
        AidreamApi.layer,
        Conversations.layer,
        ActiveTools.layer,
        Approvals.layer,
        CallJournal.layer,
        Obligations.layer,
        RunRecords.layer
      )
    )
  )

/**
 * The outbound half, ready to run turns.
 *
 * Needs an `HttpClient` (the fetch one works everywhere), `Credentials`, and a
 * `KeyValueStore` that survives the process where calls must: memory forgets, files
 * and browser storage do not.
 */
export const layer = (options: {
  readonly config: Partial<AidreamConfig["Service"]> & { readonly baseUrl: string }
  readonly capabilities?: CapabilitiesOptions | undefined
  readonly policy?: Partial<LocalPolicy["Service"]> | undefined
}) =>
  layerNoDeps(options.capabilities).pipe(
    Layer.provideMerge(
      Layer.mergeAll(AidreamConfig.layer(options.config), ToolLibrary.layer, LocalPolicy.layer(options.policy))
    )
  )
