import { Effect } from "effect"
import { AgentId, type ConversationId, type RunId, UserRequestId } from "../../../domain/aidream/Ids.ts"
import type { ConversationFacts, FoundTurn, RunKey } from "../Ledger.ts"
import {
  conversationNotFound,
  notResumable,
  outstandingCalls,
  resumeConflict,
  userRequestNotFound
} from "../Refusal.ts"
import { addRun, liveRuns } from "./openTurn.ts"
import { int, jsonObject, jsonStrings, type Row, text } from "./rows.ts"
import { abandonRunning, concealing, lapse, lockOwned, outstanding, type Store, transaction } from "./Store.ts"

const factsOf = (row: Row): ConversationFacts => ({
  agentId: AgentId.make(text(row.agent_id)),
  isVersion: int(row.is_version) === 1,
  variables: jsonObject(row.variables)
})

export const conversation = (store: Store) => (owner: string, id: ConversationId) =>
  store.sql<Row>`SELECT * FROM conversations WHERE id = ${id} AND owner = ${owner}`.pipe(
    Effect.flatMap(([row]) => (row === undefined ? Effect.fail(conversationNotFound()) : Effect.succeed(factsOf(row)))),
    concealing("conversation")
  )

/** The turn a resume means: the named one, else of those that go on the one answered last, else the newest. */
export const findTurn = (store: Store) =>
  Effect.fnUntraced(function* (owner: string, conversationId: ConversationId, wanted: UserRequestId | undefined) {
    const { sql } = store
    yield* conversation(store)(owner, conversationId)
    const id = wanted ?? (yield* answeredLast(store, conversationId))
    if (id === undefined) return yield* userRequestNotFound()
    const [row] = yield* sql<Row>`SELECT * FROM user_requests
      WHERE id = ${id} AND conversation_id = ${conversationId} AND owner = ${owner}`
    if (row === undefined) return yield* userRequestNotFound()
    return {
      ...factsOf(row),
      userRequestId: UserRequestId.make(text(row.id)),
      limits: { maxIterations: int(row.max_iterations), maxRetries: int(row.max_retries) },
      iteration: int(row.iteration),
      loadedTools: jsonStrings(row.loaded_tools)
    } satisfies FoundTurn
  }, concealing("find"))

const answeredLast = Effect.fnUntraced(function* ({ sql }: Store, conversationId: ConversationId) {
  const [answered] = yield* sql<Row>`SELECT user_request_id FROM tool_calls
    WHERE conversation_id = ${conversationId} AND is_client_delegated = 1 AND status IN ('completed', 'error')
    AND user_request_id IN (SELECT id FROM user_requests
      WHERE conversation_id = ${conversationId} AND status IN ('pending', 'processing', 'paused'))
    ORDER BY COALESCE(resolved_at, completed_at) DESC, created_at DESC LIMIT 1`
  if (answered !== undefined) return UserRequestId.make(text(answered.user_request_id))
  const [newest] = yield* sql<Row>`SELECT id FROM user_requests WHERE conversation_id = ${conversationId}
    ORDER BY CASE WHEN status IN ('pending', 'processing', 'paused') THEN 0 ELSE 1 END, turn DESC LIMIT 1`
  return newest === undefined ? undefined : UserRequestId.make(text(newest.id))
})

/** Makes a paused turn this run's, if nobody was faster. */
export const claimTurn =
  (store: Store) => (owner: string, conversationId: ConversationId, userRequestId: UserRequestId, runId: RunId) =>
    transaction(
      store,
      "claim",
      Effect.fnUntraced(function* (now) {
        const { sql } = store
        yield* lockOwned(store, owner, conversationId, now)
        yield* lapse(store, conversationId, now)
        const [turn] = yield* sql<Row>`SELECT status FROM user_requests
          WHERE id = ${userRequestId} AND conversation_id = ${conversationId}`
        if (turn === undefined) return yield* userRequestNotFound()
        const waiting = yield* outstanding(store, { conversationId, userRequestId })
        if (waiting.length > 0) return yield* outstandingCalls(waiting)

        const status = text(turn.status)
        if (status === "completed" || status === "failed" || status === "cancelled") return yield* notResumable(status)
        // Positions follow one another, so another turn of the conversation has to pause or end first.
        if ((yield* liveRuns(store, conversationId)) > 0) {
          return yield* resumeConflict(status === "pending" ? "pending" : "processing")
        }
        const [claimed] = yield* sql<Row>`UPDATE user_requests SET status = 'processing',
          generation = generation + 1, lease_expires_at = ${now + store.millis.runLease}, updated_at = ${now}
          WHERE id = ${userRequestId} AND status = 'paused' RETURNING generation`
        if (claimed === undefined) return yield* resumeConflict("processing")
        yield* abandonRunning(store, userRequestId, now)
        const run: RunKey = { runId, conversationId, userRequestId, generation: int(claimed.generation) }
        yield* addRun(store, owner, run, now)
        return run
      })
    )
