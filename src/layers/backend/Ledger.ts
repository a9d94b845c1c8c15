import { Context, type Duration, type Effect, Schema } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import type { AgentId, CallId, ConversationId, RunId, UserRequestId } from "../../domain/aidream/Ids.ts"
import type { DesktopInstance, PendingCall } from "../../domain/aidream/PendingCall.ts"
import type { ToolResultsRequest, ToolResultsResponse } from "../../domain/aidream/ToolResults.ts"
import type { Refusal } from "./Refusal.ts"
import type { ToolOutcome } from "./ServerTools.ts"

/** The states of a turn (part 10.8). */
export const TurnStatus = Schema.Literals(["pending", "processing", "paused", "completed", "failed", "cancelled"])
export type TurnStatus = typeof TurnStatus.Type

/** The store did not do what it was asked to. Its cause is for the log only. */
export class LedgerFailure extends Schema.TaggedError<LedgerFailure>("effect-frontend-tools/backend/LedgerFailure")(
  "LedgerFailure",
  { operation: Schema.String, cause: Schema.Defect() }
) {
  override get message(): string {
    return `the ledger failed: ${this.operation}`
  }
}

/** The turn is not this run's any more: it was cancelled, or its lease ran out and another run has it. */
export class RunLost extends Schema.TaggedError<RunLost>("effect-frontend-tools/backend/RunLost")("RunLost", {
  status: TurnStatus
}) {}

/** What a run shows to be allowed to write. A later run of the same turn has a higher generation. */
export interface RunKey {
  readonly runId: RunId
  readonly conversationId: ConversationId
  readonly userRequestId: UserRequestId
  readonly generation: number
}

/** What a conversation is about. */
export interface ConversationFacts {
  readonly agentId: AgentId
  readonly isVersion: boolean
  readonly variables: JsonObject
}

/** A new turn. */
export interface NewTurn extends ConversationFacts {
  readonly owner: string
  readonly conversationId: ConversationId
  readonly runId: RunId
  readonly userRequestId: UserRequestId
  /** `true`: the conversation must not exist yet. `false`: it must, and be the owner's. */
  readonly isNew: boolean
  /** The user's message, encoded. Absent when variables drive the agent, or on a retry. */
  readonly message: unknown
  readonly limits: TurnLimits
  /** Telemetry and scoping fields of the request, as sent. */
  readonly metadata: JsonObject
}

/** Bounds of a turn, over all its runs. */
export interface TurnLimits {
  readonly maxIterations: number
  readonly maxRetries: number
}

/** A turn a resume asks for. */
export interface FoundTurn extends ConversationFacts {
  readonly userRequestId: UserRequestId
  readonly limits: TurnLimits
  /** Model answers so far. */
  readonly iteration: number
  /** Names of catalog tools that were loaded during the turn. */
  readonly loadedTools: ReadonlyArray<string>
}

/** A message of a conversation. */
export interface StoredMessage {
  readonly id: string
  readonly position: number
  readonly role: "user" | "assistant"
  /** An encoded `effect/ai` prompt message. */
  readonly content: unknown
}

/** What the ledger says about one call. */
export interface StoredCall {
  readonly callId: CallId
  readonly userRequestId: UserRequestId
  readonly status: "running" | "delegated" | "completed" | "error"
  readonly output: unknown
  readonly errorType: string | undefined
  readonly errorMessage: string | undefined
}

/** A conversation as it stands. */
export interface Transcript {
  readonly messages: ReadonlyArray<StoredMessage>
  readonly calls: ReadonlyMap<string, StoredCall>
}

/** A call of a model, about to be entered. */
export interface NewCall {
  readonly id: string
  readonly callId: CallId
  /** The canonical name. */
  readonly toolName: string
  /** The name the model used. */
  readonly calledName: string
  readonly arguments: JsonObject
  /** Which executor it is for; `undefined` for the server and for inline tools. */
  readonly executor: string | undefined
  readonly targetInstanceId: string | undefined
}

/** One answer of the model. */
export interface Step {
  readonly iteration: number
  readonly messageId: string
  /** The assistant message, encoded, with its tool calls. */
  readonly message: unknown
  readonly calls: ReadonlyArray<NewCall>
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
}

/**
 * Everything that outlives a process: conversations, turns, messages and tool calls.
 *
 * Each method is one transaction. Methods that take a `RunKey` change something only
 * while the turn is that run's, else they fail with `RunLost`; so two processes, or a
 * process that was thought dead, can never both write to a turn.
 *
 * A turn whose lease ran out counts as `paused` everywhere. Its calls that were not
 * handed out yet end as error `abandoned`: their effect is unknown, so nothing runs
 * them again by itself.
 */
export class Ledger extends Context.Service<
  Ledger,
  {
    /** What a conversation is about; 404 when it is not the owner's. */
    readonly conversation: (
      owner: string,
      id: ConversationId
    ) => Effect.Effect<ConversationFacts, Refusal | LedgerFailure>

    /** Opens a turn with its user message, or refuses (parts 2.1, 2.2, Q4). */
    readonly open: (turn: NewTurn) => Effect.Effect<RunKey, Refusal | LedgerFailure>

    /** The turn a resume means (part 2.4); without an id the one answered last. */
    readonly find: (
      owner: string,
      conversationId: ConversationId,
      userRequestId: UserRequestId | undefined
    ) => Effect.Effect<FoundTurn, Refusal | LedgerFailure>

    /** The atomic claim of a resume: of any number of claims one wins (part 10.8). */
    readonly claim: (
      owner: string,
      conversationId: ConversationId,
      userRequestId: UserRequestId,
      runId: RunId
    ) => Effect.Effect<RunKey, Refusal | LedgerFailure>

    readonly transcript: (id: ConversationId) => Effect.Effect<Transcript, LedgerFailure>

    /** Prolongs the run's lease. */
    readonly renew: (run: RunKey) => Effect.Effect<void, RunLost | LedgerFailure>

    /** Enters an answer of the model and its calls, which are running from now on. */
    readonly step: (run: RunKey, step: Step) => Effect.Effect<void, RunLost | LedgerFailure>

    /** Enters the outcome of a call the server ran. `loadedTools` joins the turn's. */
    readonly settle: (
      run: RunKey,
      callId: CallId,
      outcome: ToolOutcome,
      options: { readonly durationMillis: number; readonly loadedTools: ReadonlyArray<string> }
    ) => Effect.Effect<void, RunLost | LedgerFailure>

    /**
     * Hands calls to the client, all at once. `step` enters them in the same
     * transaction. Only after this may anybody hear of them. The run keeps its lease
     * just long enough to write `paused`.
     */
    readonly delegate: (
      run: RunKey,
      callIds: ReadonlyArray<CallId>,
      step: Step | undefined
    ) => Effect.Effect<void, RunLost | LedgerFailure>

    /** The end of a suspending run: the turn waits for its client. */
    readonly pause: (run: RunKey, metadata: JsonObject) => Effect.Effect<void, RunLost | LedgerFailure>

    /** The end of the turn, with the model's last answer if there is one. */
    readonly finish: (
      run: RunKey,
      end: { readonly status: "completed" | "failed"; readonly step: Step | undefined; readonly metadata: JsonObject }
    ) => Effect.Effect<void, RunLost | LedgerFailure>

    /** Gives the turn back, to be resumed by whoever comes: the process shuts down. */
    readonly release: (run: RunKey) => Effect.Effect<void, LedgerFailure>

    /** Ends the turn of a run of the owner's; calls that wait are settled as `cancelled` (part 2.8, Q4). */
    readonly cancel: (
      owner: string,
      runId: RunId
    ) => Effect.Effect<{ readonly status: TurnStatus; readonly userRequestId: UserRequestId }, Refusal | LedgerFailure>

    /** Takes answers of a client and says whether to resume (part 10.5). */
    readonly resolve: (
      owner: string,
      conversationId: ConversationId,
      body: ToolResultsRequest
    ) => Effect.Effect<ToolResultsResponse, Refusal | LedgerFailure>

    readonly pendingCalls: (
      owner: string,
      conversationId: ConversationId
    ) => Effect.Effect<ReadonlyArray<PendingCall>, Refusal | LedgerFailure>

    /** Pending calls over all conversations; with an instance, claimed for it (part 9.3). */
    readonly userPendingCalls: (
      owner: string,
      instanceId: string | undefined
    ) => Effect.Effect<ReadonlyArray<PendingCall>, LedgerFailure>

    readonly desktopInstances: (owner: string) => Effect.Effect<ReadonlyArray<DesktopInstance>, LedgerFailure>

    /** Ends what nobody will end otherwise: expired calls, lapsed leases, stale rows. */
    readonly sweep: Effect.Effect<SweepReport, LedgerFailure>
  }
>()("effect-frontend-tools/layers/backend/Ledger") {}

/** What a sweep changed. */
export interface SweepReport {
  readonly expiredCalls: number
  readonly lapsedRuns: number
  readonly abandonedCalls: number
}

/** The times a store keeps. */
export interface LedgerTimes {
  readonly runLease: Duration.Input
  readonly windDownLease: Duration.Input
  readonly claimLease: Duration.Input
  readonly delegationLifetime: Duration.Input
}
