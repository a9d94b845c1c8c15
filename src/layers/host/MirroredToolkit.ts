import { Context, type Effect, type Stream } from "effect"
import type { Tool, Toolkit } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import type { CallOutcome } from "./CallOutcome.ts"
import type { MirroredTool } from "./MirroredTool.ts"

/** Mirrored tools with their handlers: what a generation takes as its `toolkit`. */
export type MirroredTools = Toolkit.WithHandler<Record<string, MirroredTool>>

/** Mirrored tools beside those of the program itself. */
export type MirroredToolsWith<Own extends Record<string, Tool.Any>> = Toolkit.WithHandler<
  Record<string, MirroredTool | Own[keyof Own]>
>

/** Which tools a conversation is offered. Each absent field offers all. */
export interface ToolSelection {
  /** Namespaces of applications; `frontend_tools` is the bridge's own. */
  readonly namespaces?: ReadonlyArray<string> | undefined
  /**
   * Asked when a list is made and again for each call, since the tool behind a name
   * may be another one by then.
   */
  readonly where?: ((tool: HostTool) => boolean) | undefined
}

/**
 * The tools of running applications as a toolkit of `effect/ai`.
 *
 * - Sorted by name, with the application's own JSON Schema, and the same objects
 *   until something changes: a provider's prompt cache holds.
 * - A call goes to the tool that has the name when it runs, not when it was listed.
 * - Whatever goes wrong is a tool result with `isFailure` and a `MirroredFailure`; a
 *   generation does not fail because a tool did.
 * - Interrupting the generation aborts its calls.
 * - A write runs only after the host's way of asking said yes to that very call, and
 *   nobody is asked about arguments that do not fit.
 */
export class MirroredToolkit extends Context.Service<
  MirroredToolkit,
  {
    /**
     * The tools of the moment it runs in. Hand the effect itself to each generation
     * and the list follows the applications; run it once, and hand over what it gives,
     * and a conversation keeps its list: a tool that has gone by then answers `Gone`.
     */
    readonly tools: (selection?: ToolSelection) => Effect.Effect<MirroredTools>
    /**
     * The same beside the program's own tools, whose requirements must be provided.
     * A mirrored tool that has the name of one of these is left out.
     */
    readonly toolsWith: <Own extends Record<string, Tool.Any>>(
      own: Toolkit.WithHandler<Own>,
      selection?: ToolSelection
    ) => Effect.Effect<MirroredToolsWith<Own>>
    /** Calls one tool by its public name, as a handler of the toolkit does. */
    readonly call: (
      publicName: string,
      args: unknown,
      options?: ToolSelection & { readonly toolCallId?: string | undefined }
    ) => Effect.Effect<CallOutcome>
    /** Every tool, sorted by public name. */
    readonly list: Effect.Effect<ReadonlyArray<HostTool>>
    /** Signals that the list has changed. */
    readonly changes: Stream.Stream<void>
  }
>()("effect-frontend-tools/layers/host/MirroredToolkit") {}
