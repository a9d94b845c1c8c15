import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { NewTurn, RunKey } from "../Ledger.ts"
import { conversationExists, outstandingCalls, runInFlight } from "../Refusal.ts"
import { int, type Row } from "./rows.ts"
import { addMessage, lapse, lockOwned, newId, outstanding, type Store, transaction } from "./Store.ts"

/** Opens a turn: the conversation if it is new, the turn, its first run and the user's message. */
export const openTurn = (store: Store) => (turn: NewTurn) =>
  transaction(
    store,
    "open",
    Effect.fnUntraced(function* (now) {
      const { sql } = store
      if (turn.isNew) yield* createConversation(store, turn, now)
      else yield* enterConversation(store, turn, now)

      const [row] = yield* sql<Row>`UPDATE conversations SET next_turn = next_turn + 1, agent_id = ${turn.agentId},
        is_version = ${turn.isVersion ? 1 : 0}, variables = ${JSON.stringify(turn.variables)}
        WHERE id = ${turn.conversationId} RETURNING next_turn - 1 AS turn`
      yield* sql`INSERT INTO user_requests ${sql.insert({
        id: turn.userRequestId,
        conversation_id: turn.conversationId,
        owner: turn.owner,
        turn: row?.turn,
        agent_id: turn.agentId,
        is_version: turn.isVersion ? 1 : 0,
        variables: JSON.stringify(turn.variables),
        status: "processing",
        generation: 1,
        lease_expires_at: now + store.millis.runLease,
        iteration: 0,
        max_iterations: turn.limits.maxIterations,
        max_retries: turn.limits.maxRetries,
        loaded_tools: "[]",
        input_tokens: 0,
        output_tokens: 0,
        metadata: JSON.stringify(turn.metadata),
        created_at: now,
        updated_at: now
      })}`
      const run: RunKey = {
        runId: turn.runId,
        conversationId: turn.conversationId,
        userRequestId: turn.userRequestId,
        generation: 1
      }
      yield* addRun(store, turn.owner, run, now)
      if (turn.message !== undefined) {
        yield* addMessage(
          store,
          {
            id: yield* newId,
            conversationId: turn.conversationId,
            userRequestId: turn.userRequestId,
            role: "user",
            content: turn.message
          },
          now
        )
      }
      return run
    })
  )

/** Enters a run, so that its id can be cancelled. */
export const addRun = ({ sql }: Store, owner: string, run: RunKey, now: number) =>
  sql`INSERT INTO runs ${sql.insert({
    id: run.runId,
    user_request_id: run.userRequestId,
    conversation_id: run.conversationId,
    owner,
    generation: run.generation,
    started_at: now
  })}`

const createConversation = ({ sql }: Store, turn: NewTurn, now: number) =>
  sql`INSERT INTO conversations ${sql.insert({
    id: turn.conversationId,
    owner: turn.owner,
    agent_id: turn.agentId,
    is_version: turn.isVersion ? 1 : 0,
    variables: JSON.stringify(turn.variables),
    next_position: 0,
    next_turn: 0,
    created_at: now,
    updated_at: now
  })}`.pipe(Effect.catchIf(isTaken, () => Effect.fail(conversationExists())))

const isTaken = ({ reason }: SqlError.SqlError) =>
  reason._tag === "UniqueViolation" || reason._tag === "ConstraintError"

const enterConversation = Effect.fnUntraced(function* (store: Store, turn: NewTurn, now: number) {
  yield* lockOwned(store, turn.owner, turn.conversationId, now)
  yield* lapse(store, turn.conversationId, now)
  if ((yield* liveRuns(store, turn.conversationId)) > 0) return yield* runInFlight()
  const waiting = yield* outstanding(store, { conversationId: turn.conversationId })
  if (waiting.length > 0) return yield* outstandingCalls(waiting)
})

/** How many turns of a conversation are being worked on. */
export const liveRuns = ({ sql }: Store, conversationId: string) =>
  Effect.map(
    sql<Row>`SELECT COUNT(*) AS live FROM user_requests
      WHERE conversation_id = ${conversationId} AND status IN ('pending', 'processing')`,
    ([row]) => int(row?.live)
  )
