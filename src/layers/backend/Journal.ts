import { Effect } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import type { CallId, UserRequestId } from "../../domain/aidream/Ids.ts"
import { type Ledger, LedgerFailure, type RunKey, type RunLost, type Step, type Transcript } from "./Ledger.ts"
import type { ToolOutcome } from "./ServerTools.ts"

type Kept<E = never> = Effect.Effect<void, RunLost | LedgerFailure | E>

/** What one run writes down. Each method is the ledger's of the same name. */
export interface Journal {
  readonly transcript: Effect.Effect<Transcript, LedgerFailure>
  readonly renew: Kept
  readonly step: (step: Step) => Kept
  readonly settle: (
    callId: CallId,
    outcome: ToolOutcome,
    options: { readonly durationMillis: number; readonly loadedTools: ReadonlyArray<string> }
  ) => Kept
  readonly delegate: (callIds: ReadonlyArray<CallId>, step: Step | undefined) => Kept
  readonly pause: (metadata: JsonObject) => Kept
  readonly finish: (end: {
    readonly status: "completed" | "failed"
    readonly step: Step | undefined
    readonly metadata: JsonObject
  }) => Kept
  readonly release: Effect.Effect<void, LedgerFailure>
}

/** The journal of a run whose turn is in the ledger. */
export const stored = (ledger: Ledger["Service"], run: RunKey): Journal => ({
  transcript: ledger.transcript(run.conversationId),
  renew: ledger.renew(run),
  step: (step) => ledger.step(run, step),
  settle: (callId, outcome, options) => ledger.settle(run, callId, outcome, options),
  delegate: (callIds, step) => ledger.delegate(run, callIds, step),
  pause: (metadata) => ledger.pause(run, metadata),
  finish: (end) => ledger.finish(run, end),
  release: ledger.release(run)
})

/**
 * The journal of a run that leaves no trace (`store: false`). Without a ledger nothing
 * could take an answer, so such a run is offered no delegated tools.
 */
export const ephemeral = (message: unknown, userRequestId: UserRequestId): Journal => ({
  transcript: Effect.succeed({
    messages: message === undefined ? [] : [{ id: userRequestId, position: 0, role: "user", content: message }],
    calls: new Map()
  }),
  renew: Effect.void,
  step: () => Effect.void,
  settle: () => Effect.void,
  delegate: () =>
    Effect.fail(new LedgerFailure({ operation: "delegate", cause: "an ephemeral run cannot hand out calls" })),
  pause: () => Effect.void,
  finish: () => Effect.void,
  release: Effect.void
})
