import { Effect, Schema } from "effect"
import type { JsonObject } from "../../../domain/aidream/Absent.ts"
import type { CallId, RunId } from "../../../domain/aidream/Ids.ts"
import { ConversationId, UserRequestId } from "../../../domain/aidream/Ids.ts"
import { LedgerFailure, type RunKey, type Step, TurnStatus } from "../Ledger.ts"
import { runNotFound } from "../Refusal.ts"
import type { ToolOutcome } from "../ServerTools.ts"
import { jsonStrings, type Row, text } from "./rows.ts"
import { abandonRunning, addStep, callIds, fence, lapse, lockConversation, type Store, transaction } from "./Store.ts"

const ownerOf = (conversation: ReadonlyArray<Row>) => text(conversation[0]?.owner)

export const renew = (store: Store) => (run: RunKey) =>
  transaction(store, "renew", (now) => fence(store, run, now, now + store.millis.runLease))

export const step = (store: Store) => (run: RunKey, entered: Step) =>
  transaction(
    store,
    "step",
    Effect.fnUntraced(function* (now) {
      const owner = ownerOf(yield* lockConversation(store, run.conversationId, now))
      yield* fence(store, run, now, now + store.millis.runLease)
      yield* addStep(store, owner, run, entered, now)
    })
  )

export const settle =
  (store: Store) =>
  (
    run: RunKey,
    callId: CallId,
    outcome: ToolOutcome,
    options: { readonly durationMillis: number; readonly loadedTools: ReadonlyArray<string> }
  ) =>
    transaction(
      store,
      "settle",
      Effect.fnUntraced(function* (now) {
        const { sql } = store
        yield* lockConversation(store, run.conversationId, now)
        yield* fence(store, run, now, now + store.millis.runLease)
        yield* sql`UPDATE tool_calls SET status = ${outcome.isError ? "error" : "completed"},
          success = ${outcome.isError ? 0 : 1}, is_error = ${outcome.isError ? 1 : 0},
          error_type = ${outcome.errorType ?? null}, error_message = ${outcome.errorMessage ?? null},
          output = ${JSON.stringify(outcome.output ?? null)}, duration_ms = ${options.durationMillis},
          completed_at = ${now}, resolution_source = 'server', updated_at = ${now}
          WHERE conversation_id = ${run.conversationId} AND call_id = ${callId} AND status = 'running'`
        if (options.loadedTools.length > 0) {
          const [row] = yield* sql<Row>`SELECT loaded_tools FROM user_requests WHERE id = ${run.userRequestId}`
          const names = Array.from(new Set([...jsonStrings(row?.loaded_tools), ...options.loadedTools]))
          yield* sql`UPDATE user_requests SET loaded_tools = ${JSON.stringify(names)} WHERE id = ${run.userRequestId}`
        }
      })
    )

export const delegate = (store: Store) => (run: RunKey, ids: ReadonlyArray<CallId>, entered: Step | undefined) =>
  transaction(
    store,
    "delegate",
    Effect.fnUntraced(function* (now) {
      const { millis, sql } = store
      const owner = ownerOf(yield* lockConversation(store, run.conversationId, now))
      yield* fence(store, run, now, now + millis.windDownLease)
      if (entered !== undefined) yield* addStep(store, owner, run, entered, now)
      const flipped = yield* sql<Row>`UPDATE tool_calls SET status = 'delegated', is_client_delegated = 1,
        generation = ${run.generation}, runtime_execution_id = ${run.runId},
        expires_at = ${now + millis.delegationLifetime}, updated_at = ${now}
        WHERE conversation_id = ${run.conversationId} AND call_id IN ${callIds(store, ids)} AND status = 'running'
        RETURNING id`
      if (flipped.length !== ids.length) {
        return yield* new LedgerFailure({ operation: "delegate", cause: "a call to hand out is not running" })
      }
    })
  )

export const pause = (store: Store) => (run: RunKey, metadata: JsonObject) =>
  end(store, run, "paused", undefined, metadata)

export const finish =
  (store: Store) =>
  (
    run: RunKey,
    ending: { readonly status: "completed" | "failed"; readonly step: Step | undefined; readonly metadata: JsonObject }
  ) =>
    end(store, run, ending.status, ending.step, ending.metadata)

export const release = (store: Store) => (run: RunKey) =>
  end(store, run, "paused", undefined, { status: "released" }).pipe(Effect.catchTag("RunLost", () => Effect.void))

const end = (
  store: Store,
  run: RunKey,
  status: "paused" | "completed" | "failed",
  entered: Step | undefined,
  metadata: JsonObject
) =>
  transaction(
    store,
    status,
    Effect.fnUntraced(function* (now) {
      const owner = ownerOf(yield* lockConversation(store, run.conversationId, now))
      yield* fence(store, run, now, now)
      if (entered !== undefined) yield* addStep(store, owner, run, entered, now)
      yield* store.sql`UPDATE user_requests SET status = ${status}, lease_expires_at = NULL,
        metadata = ${JSON.stringify(metadata)}, updated_at = ${now} WHERE id = ${run.userRequestId}`
      yield* abandonRunning(store, run.userRequestId, now)
    })
  )

const decodeStatus = Schema.decodeUnknownEffect(TurnStatus)

/** Ends the turn of a run and settles what it still waits for. */
export const cancel = (store: Store) => (owner: string, runId: RunId) =>
  transaction(
    store,
    "cancel",
    Effect.fnUntraced(function* (now) {
      const { sql } = store
      const [run] = yield* sql<Row>`SELECT user_request_id, conversation_id FROM runs
        WHERE id = ${runId} AND owner = ${owner}`
      if (run === undefined) return yield* runNotFound()
      const userRequestId = UserRequestId.make(text(run.user_request_id))
      const conversationId = ConversationId.make(text(run.conversation_id))
      yield* lockConversation(store, conversationId, now)
      yield* lapse(store, conversationId, now)
      const [cancelled] = yield* sql<Row>`UPDATE user_requests
        SET status = 'cancelled', lease_expires_at = NULL, updated_at = ${now}
        WHERE id = ${userRequestId} AND status IN ('pending', 'processing', 'paused') RETURNING status`
      if (cancelled === undefined) {
        const [turn] = yield* sql<Row>`SELECT status FROM user_requests WHERE id = ${userRequestId}`
        return { status: yield* Effect.orDie(decodeStatus(turn?.status)), userRequestId }
      }
      yield* sql`UPDATE tool_calls SET status = 'error', success = 0, is_error = 1, error_type = 'cancelled',
        error_message = 'The turn was cancelled before this call was answered.', resolution_source = 'cancel',
        completed_at = ${now}, resolved_at = ${now}, updated_at = ${now}
        WHERE user_request_id = ${userRequestId} AND status IN ('running', 'delegated')`
      return { status: "cancelled" as const, userRequestId }
    })
  )
