import { Effect } from "effect"
import type { ConversationId } from "../../../domain/aidream/Ids.ts"
import type { ClientToolResult, ToolResultsRequest, ToolResultsResponse } from "../../../domain/aidream/ToolResults.ts"
import { toolCallsNotFound } from "../Refusal.ts"
import { int, type Row, text } from "./rows.ts"
import { lapse, lockOwned, type Store, transaction } from "./Store.ts"

interface Settled {
  readonly _tag: "resolved" | "already_resolved"
  readonly userRequestId: string
  /** Of the run that handed the call out. */
  readonly generation: number
}

/** Takes answers and decides whether to resume, in one transaction (part 10.5). */
export const resolveResults =
  (store: Store) => (owner: string, conversationId: ConversationId, body: ToolResultsRequest) =>
    transaction(
      store,
      "resolve",
      Effect.fnUntraced(function* (now) {
        yield* lockOwned(store, owner, conversationId, now)
        yield* lapse(store, conversationId, now)

        const resolved: Array<string> = []
        const alreadyResolved: Array<string> = []
        const notFound: Array<string> = []
        const seen = new Set<string>()
        // The newest run that handed out one of the settled calls, by turn.
        const generations = new Map<string, number>()
        for (const result of body.results) {
          const id = result.call_id
          if (seen.has(id)) {
            if (!notFound.includes(id)) alreadyResolved.push(id)
            continue
          }
          seen.add(id)
          const settled = yield* settleOne(store, conversationId, result, body.instance_id ?? undefined, now)
          if (settled === undefined) {
            notFound.push(id)
            continue
          }
          ;(settled._tag === "resolved" ? resolved : alreadyResolved).push(id)
          const before = generations.get(settled.userRequestId) ?? 0
          generations.set(settled.userRequestId, Math.max(before, settled.generation))
        }
        if (generations.size === 0) return yield* toolCallsNotFound(notFound)

        const turn = yield* turnToResume(store, generations)
        return {
          resolved,
          already_resolved: alreadyResolved,
          not_found: notFound,
          continuation_needed: turn.needed,
          user_request_id: turn.id,
          conversation_id: conversationId
        } satisfies ToolResultsResponse
      })
    )

/** Enters one answer, unless it has one. `undefined`: no call of this conversation that the caller may answer. */
const settleOne = Effect.fnUntraced(function* (
  { sql }: Store,
  conversationId: ConversationId,
  result: ClientToolResult,
  instanceId: string | undefined,
  now: number
) {
  const [taken] = yield* sql<Row>`UPDATE tool_calls SET status = ${result.is_error ? "error" : "completed"},
    success = ${result.is_error ? 0 : 1}, is_error = ${result.is_error ? 1 : 0},
    error_type = ${result.is_error ? "client_tool_error" : null}, error_message = ${result.error_message ?? null},
    output = ${JSON.stringify(result.output ?? null)}, duration_ms = ${result.duration_ms ?? 0},
    resolved_at = ${now}, completed_at = ${now}, resolution_source = 'client', updated_at = ${now}
    WHERE conversation_id = ${conversationId} AND call_id = ${result.call_id} AND is_client_delegated = 1
    AND (status = 'delegated' OR (status = 'error' AND resolution_source = 'timeout_sweep'))
    AND (target_instance_id IS NULL OR target_instance_id = ${instanceId ?? null})
    RETURNING user_request_id, generation`
  if (taken !== undefined) return settledOf("resolved", taken)
  const [known] = yield* sql<Row>`SELECT user_request_id, generation FROM tool_calls
    WHERE conversation_id = ${conversationId} AND call_id = ${result.call_id} AND status IN ('completed', 'error')
    AND (target_instance_id IS NULL OR target_instance_id = ${instanceId ?? null})`
  return known === undefined ? undefined : settledOf("already_resolved", known)
})

const settledOf = (_tag: Settled["_tag"], row: Row): Settled => ({
  _tag,
  userRequestId: text(row.user_request_id),
  generation: int(row.generation)
})

/** The newest turn that needs a continuation, else the newest of all. */
const turnToResume = Effect.fnUntraced(function* ({ sql }: Store, generations: ReadonlyMap<string, number>) {
  const turns = yield* sql<Row>`SELECT id, status, generation,
    (SELECT COUNT(*) FROM tool_calls WHERE user_request_id = user_requests.id AND status = 'delegated') AS waiting
    FROM user_requests WHERE id IN ${sql.in(Array.from(generations.keys()))} ORDER BY turn DESC`
  const evaluated = turns.map((turn) => ({
    id: text(turn.id),
    needed: continuationNeeded({
      waiting: int(turn.waiting),
      status: text(turn.status),
      isDelegatingRun: generations.get(text(turn.id)) === int(turn.generation)
    })
  }))
  return evaluated.find(({ needed }) => needed) ?? { id: evaluated[0]?.id ?? null, needed: false }
})

/**
 * The truth table of part 10.5, for a turn of which a call was settled.
 *
 * While the run that handed the calls out still winds down the answer is yes: no
 * other signal would follow.
 */
export const continuationNeeded = (turn: {
  readonly waiting: number
  readonly status: string
  readonly isDelegatingRun: boolean
}): boolean => {
  if (turn.waiting > 0) return false
  if (turn.status === "paused") return true
  return (turn.status === "pending" || turn.status === "processing") && turn.isDelegatingRun
}
