import { Context, Effect } from "effect"
import type { ConversationId, RunId, UserRequestId } from "../../domain/aidream/Ids.ts"
import type { ResolvedClient } from "./Capabilities.ts"
import type { ToolChanges } from "./ToolChanges.ts"
import type { ActiveTool } from "./ToolMerge.ts"

/** The run a server tool is called in. The engine provides it to every tool it runs. */
export class CurrentRun extends Context.Service<
  CurrentRun,
  {
    readonly conversationId: ConversationId
    readonly userRequestId: UserRequestId
    readonly runId: RunId
    /** Who the conversation belongs to. */
    readonly owner: string
    /** What the client said it is, for this run. */
    readonly client: ResolvedClient
    /** The tools the model sees in this iteration. */
    readonly tools: ReadonlyArray<ActiveTool>
    /** Changes for the next iteration. */
    readonly changes: ToolChanges
  }
>()("effect-frontend-tools/layers/backend/CurrentRun") {
  /** For handlers, whose types name no such need. Outside a run there is none, and asking is a defect. */
  static readonly current: Effect.Effect<CurrentRun["Service"]> = Effect.orDie(
    Effect.flatMap(Effect.serviceOption(CurrentRun), Effect.fromOption)
  )
}
