import { Context, Effect, Layer, Stream } from "effect"
import { isJsonObject } from "../../domain/aidream/Absent.ts"
import { delegationOfEvent } from "../../domain/aidream/Delegation.ts"
import { UserRequestId } from "../../domain/aidream/Ids.ts"
import { isSuspension, type RunEnd, runEndAfter } from "../../domain/aidream/RunEnd.ts"
import type { StreamEvent } from "../../domain/aidream/StreamEvent.ts"
import { ActiveTools } from "./ActiveTools.ts"
import type { OpenRun } from "./AidreamApi.ts"
import { type Conversation, Conversations } from "./Conversations.ts"
import { DelegationDispatcher } from "./DelegationDispatcher.ts"
import type { RunRecord } from "./RunRecords.ts"

/** How a run's stream ended, once it is read. */
export interface Followed {
  readonly end: RunEnd
  /** The run delegated, so the turn is paused whatever its stream says (part 1.5). */
  readonly suspended: boolean
}

/**
 * Reads one run to its end: passes every event on in order, hands delegated calls to
 * the dispatcher, and never waits for any of them. Start and resume go through here
 * alike.
 */
export class RunFollower extends Context.Service<
  RunFollower,
  {
    readonly follow: (conversation: Conversation, run: OpenRun, record: RunRecord) => Effect.Effect<Followed>
  }
>()("effect-frontend-tools/layers/aidream/RunFollower") {
  static readonly layer = Layer.effect(
    RunFollower,
    Effect.gen(function* () {
      const conversations = yield* Conversations
      const dispatcher = yield* DelegationDispatcher
      const active = yield* ActiveTools

      return RunFollower.of({
        follow: Effect.fnUntraced(function* (conversation, run, record) {
          let end: RunEnd = "truncated"
          let suspended = false

          const act = (event: StreamEvent): Effect.Effect<void> => {
            end = runEndAfter(end, event)
            suspended ||= isSuspension(event)
            conversation.userRequestId ??= userRequestOf(event)
            active.observe(conversation.id, event)
            if (event._tag === "data") return checkConversation(conversation, event.data)
            if (event._tag !== "tool_event") return Effect.void
            const delegation = delegationOfEvent(event.data, {
              conversationId: conversation.id,
              userRequestId: conversation.userRequestId
            })
            if (delegation === undefined) return Effect.void
            suspended = true
            return dispatcher.dispatch(delegation, record)
          }

          yield* Stream.runForEach(Stream.fromQueue(run.body.items), (item) => {
            if (item._tag === "malformed" || item._tag === "unrecognised") {
              conversations.publish(conversation.id, { _tag: "StreamProblem", item })
              return Effect.logDebug(`a line of run ${run.runId} is no event`)
            }
            conversations.publish(conversation.id, { _tag: "Stream", event: item })
            return act(item)
          })

          // All was said, only the socket stayed open: a normal end (part 3.6).
          if (run.body.end() === "lingering" && end === "truncated") end = "complete"
          return { end, suspended }
        })
      })
    })
  )
}

const checkConversation = (conversation: Conversation, data: unknown): Effect.Effect<void> =>
  isJsonObject(data) && typeof data.conversation_id === "string" && data.conversation_id !== conversation.id
    ? Effect.logWarning(`the backend calls conversation ${conversation.id} ${data.conversation_id}; ours is kept`)
    : Effect.void

const requestTables: ReadonlySet<string> = new Set(["user_request", "cx_user_request"])

/** The turn's id, when the event names it. */
const userRequestOf = (event: StreamEvent): UserRequestId | undefined => {
  if (event._tag !== "record_reserved") return undefined
  const { table, record_id: recordId, parent_refs: parents } = event.data
  const id = requestTables.has(table) ? recordId : parents?.user_request_id
  return typeof id === "string" && id !== "" ? UserRequestId.make(id) : undefined
}
