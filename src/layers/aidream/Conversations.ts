import { type Cause, Context, Effect, Layer, Queue, type Scope } from "effect"
import type { AgentEvent, TurnOutcome } from "../../domain/aidream/AgentEvent.ts"
import type { CallId, ConversationId, RunId, UserRequestId } from "../../domain/aidream/Ids.ts"

/** A delegated call of ours that the backend has not confirmed. */
export interface OpenCall {
  readonly turn: number
  readonly userRequestId: UserRequestId | undefined
  /** `working`: asked about or running. `posting`: it has an answer. */
  readonly phase: "working" | "posting"
}

/** What this process knows of one conversation. Changed in place, by one event at a time. */
export interface Conversation {
  readonly id: ConversationId
  /** Grows with every message and every cancel; work of an older turn is superseded. */
  turn: number
  /** The turn's id, as soon as the backend named it. */
  userRequestId: UserRequestId | undefined
  /** The newest run, open or not. */
  runId: RunId | undefined
  /** Run bodies being opened or read. */
  runs: number
  /** Continuations claimed or queued, and listings under way. */
  holds: number
  readonly calls: Map<CallId, OpenCall>
  /** What the turn comes to if nothing more happens. */
  outcome: TurnOutcome
  readonly subscribers: Set<Queue.Queue<AgentEvent, Cause.Done>>
}

/**
 * The conversations of this process, and the one bus their events travel on.
 *
 * A turn has ended when nothing here can move it on: no run is open, no call of
 * ours is unconfirmed, no continuation is claimed. `check` finds that out and closes
 * the subscribers with `TurnEnded`.
 */
export class Conversations extends Context.Service<
  Conversations,
  {
    /** The conversation, made on first use. */
    readonly get: (id: ConversationId) => Conversation
    /** Begins a new turn: what the last one left is superseded. */
    readonly beginTurn: (conversation: Conversation) => void
    readonly publish: (id: ConversationId, event: AgentEvent) => void
    /** Events from now on. Ends after `TurnEnded`. */
    readonly subscribe: (id: ConversationId) => Effect.Effect<Queue.Dequeue<AgentEvent, Cause.Done>, never, Scope.Scope>
    /** Ends the turn for everyone who listens, whatever is still under way. */
    readonly endTurn: (conversation: Conversation, outcome: TurnOutcome) => void
    /** Ends the turn if nothing can move it on. */
    readonly check: (conversation: Conversation) => void
  }
>()("effect-frontend-tools/layers/aidream/Conversations") {
  static readonly layer = Layer.sync(Conversations, () => {
    const conversations = new Map<ConversationId, Conversation>()
    // Numbers turns over all conversations, so a forgotten one can't meet its old number again.
    let turns = 0

    const get = (id: ConversationId): Conversation => {
      const existing = conversations.get(id)
      if (existing !== undefined) return existing
      const conversation: Conversation = {
        id,
        turn: ++turns,
        userRequestId: undefined,
        runId: undefined,
        runs: 0,
        holds: 0,
        calls: new Map(),
        outcome: "idle",
        subscribers: new Set()
      }
      conversations.set(id, conversation)
      return conversation
    }

    const publish = (id: ConversationId, event: AgentEvent) => {
      for (const queue of conversations.get(id)?.subscribers ?? []) Queue.offerUnsafe(queue, event)
    }

    const endTurn = (conversation: Conversation, outcome: TurnOutcome) => {
      const subscribers = [...conversation.subscribers]
      conversation.subscribers.clear()
      for (const queue of subscribers) {
        Queue.offerUnsafe(queue, { _tag: "TurnEnded", conversationId: conversation.id, outcome })
        Queue.endUnsafe(queue)
      }
    }

    return Conversations.of({
      get,
      publish,
      beginTurn: (conversation) => {
        conversation.turn = ++turns
        conversation.userRequestId = undefined
        conversation.outcome = "idle"
      },
      subscribe: (id) =>
        Effect.acquireRelease(
          Effect.map(Queue.unbounded<AgentEvent, Cause.Done>(), (queue) => {
            get(id).subscribers.add(queue)
            return queue
          }),
          (queue) =>
            Effect.sync(() => {
              conversations.get(id)?.subscribers.delete(queue)
            })
        ),
      endTurn,
      check: (conversation) => {
        if (conversation.runs > 0 || conversation.holds > 0 || conversation.calls.size > 0) return
        if (conversations.get(conversation.id) === conversation) conversations.delete(conversation.id)
        endTurn(conversation, conversation.outcome)
      }
    })
  })
}
