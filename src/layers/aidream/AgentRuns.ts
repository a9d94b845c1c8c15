import { Context, Deferred, Effect, Fiber, Layer, Result, type Scope, Stream } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import type { AgentEvent } from "../../domain/aidream/AgentEvent.ts"
import { AidreamError, TurnSuspended } from "../../domain/aidream/AidreamError.ts"
import { delegationOfPending } from "../../domain/aidream/Delegation.ts"
import { type AgentId, ConversationId } from "../../domain/aidream/Ids.ts"
import type { Initiator, PermissionMode } from "../../domain/aidream/Tier.ts"
import { ContinueRequest, ResumeRequest, StartRequest } from "../../domain/aidream/TurnRequest.ts"
import { ActiveTools } from "./ActiveTools.ts"
import { AidreamApi, type OpenRun } from "./AidreamApi.ts"
import { Capabilities, type Envelope } from "./Capabilities.ts"
import { type ContinuationSignal, Continuations } from "./Continuations.ts"
import { type Conversation, Conversations } from "./Conversations.ts"
import { DelegationDispatcher } from "./DelegationDispatcher.ts"
import { continuationKey, Obligations } from "./Obligations.ts"
import { ResultsFunnel } from "./ResultsFunnel.ts"
import { RunFollower } from "./RunFollower.ts"
import { type RunOptions, type RunRecord, RunRecords, unknownRun } from "./RunRecords.ts"

/** One message to an agent. */
export interface RunInput {
  readonly agentId: AgentId
  /** Text or content parts; may be absent when variables drive the agent. */
  readonly message?: string | ReadonlyArray<JsonObject> | undefined
  /** An existing conversation goes on. Absent: a new one, under an id minted here. */
  readonly conversationId?: ConversationId | undefined
  /** The given id is a new conversation's. */
  readonly isNew?: boolean | undefined
  /** The agent id names one version of an agent. */
  readonly isVersion?: boolean | undefined
  readonly variables?: JsonObject | undefined
  /** Default `ask`. */
  readonly mode?: PermissionMode | undefined
  readonly agentName?: string | undefined
  /** Default `agent`: the person's own. */
  readonly initiator?: Initiator | undefined
  /** Repeated in every resume of the turn. */
  readonly options?: RunOptions | undefined
  /** When calls of the last turn are unanswered. Default `refuse`. */
  readonly whenSuspended?: "refuse" | "cancel" | undefined
}

export interface OpenOptions {
  /** The person's mode now. Default: what the conversation's last run was sent with, else `ask`. */
  readonly mode?: PermissionMode | undefined
  /** Ask the backend to resume when nothing is pending: for a turn whose continuation was lost. */
  readonly resume?: boolean | undefined
}

/**
 * Turns of remote agents (parts 1, 8 and 9).
 *
 * `run` is one stream over everything a turn does: its start, its suspensions, the
 * calls that run here, its resumes. It ends with `TurnEnded`, when nothing here can
 * move the turn on. Runs and calls belong to this service and not to who listens: a
 * consumer that leaves stops nothing, `cancel` does. Any number of consumers may
 * listen to any number of conversations.
 */
export class AgentRuns extends Context.Service<
  AgentRuns,
  {
    /** Sends a message. Fails when the first request does; later trouble is in the events. */
    readonly run: (input: RunInput) => Stream.Stream<AgentEvent, AidreamError>
    /**
     * Cold resume: runs or answers what still waits in a conversation, and listens.
     * Fails when the list of pending calls can't be had: that is not "nothing pending".
     */
    readonly open: (conversationId: ConversationId, options?: OpenOptions) => Stream.Stream<AgentEvent, AidreamError>
    /** Stops the turn: its calls here, its continuation, its run on the backend. */
    readonly cancel: (conversationId: ConversationId) => Effect.Effect<void>
    /**
     * Goes on with what an earlier process left: answers that were not confirmed, calls
     * whose outcome is unknown, open questions, lost continuations. Call it at start,
     * once the tools are registered, and on every wake-up.
     */
    readonly recover: Effect.Effect<void>
    /** The conversation's mode from now on. */
    readonly setMode: (conversationId: ConversationId, mode: PermissionMode) => Effect.Effect<void>
  }
>()("effect-frontend-tools/layers/aidream/AgentRuns") {
  static readonly layer = Layer.effect(
    AgentRuns,
    Effect.gen(function* () {
      const api = yield* AidreamApi
      const active = yield* ActiveTools
      const capabilities = yield* Capabilities
      const continuations = yield* Continuations
      const conversations = yield* Conversations
      const dispatcher = yield* DelegationDispatcher
      const follower = yield* RunFollower
      const funnel = yield* ResultsFunnel
      const obligations = yield* Obligations
      const records = yield* RunRecords
      const scope = yield* Effect.scope

      const driving = new Map<Conversation, Set<Fiber.Fiber<void>>>()

      const latch = (record: Omit<RunRecord, "since">) =>
        records.latch(record).pipe(
          // A run is worth more than its record: it goes on without one.
          Effect.catchTag("KeyValueStoreError", (error) =>
            Effect.as(Effect.logWarning("the run's record was not saved", error), { ...record, since: 0 })
          )
        )

      /** Opens a run and reads it to its end. `conversation.runs` counts it already. */
      const drive = (
        conversation: Conversation,
        request: RunRequest,
        opened: Deferred.Deferred<void, AidreamError>
      ): Effect.Effect<void> =>
        Effect.gen(function* () {
          const envelope = yield* capabilities.build({
            conversationId: conversation.id,
            purpose: request.purpose,
            mode: request.record.mode
          })
          const record = yield* latch({ ...request.record, pinnedTab: envelope.pin.tabId, pin: envelope.pin.facts })
          const attempt = yield* Effect.result(request.open(envelope))
          if (Result.isFailure(attempt)) {
            yield* Deferred.fail(opened, attempt.failure)
            return
          }
          const run = attempt.success
          conversation.runId = run.runId
          yield* Effect.ignore(
            records.update(conversation.id, (latched) => ({ ...latched, runId: run.runId })),
            { log: true }
          )
          if (run.conversationId !== undefined && run.conversationId !== conversation.id) {
            yield* Effect.logWarning(
              `the backend answered for conversation ${run.conversationId}, not ${conversation.id}`
            )
          }
          conversations.publish(conversation.id, {
            _tag: "RunOpened",
            conversationId: conversation.id,
            runId: run.runId,
            resumed: request.purpose === "resume"
          })
          yield* Deferred.succeed(opened, undefined)

          const followed = yield* follower.follow(conversation, run, record)
          const halted = followed.end === "failed" || followed.end === "cancelled"
          conversation.outcome = followed.suspended && !halted ? "paused" : followed.end
          if (request.owed !== undefined && followed.end === "complete") {
            yield* Effect.ignore(obligations.paid(request.owed), { log: true })
          }
          conversations.publish(conversation.id, { _tag: "RunEnded", ...followed })
        }).pipe(
          Effect.scoped,
          Effect.ensuring(
            Effect.suspend(() => {
              conversation.runs--
              return continuations.drain(conversation)
            })
          ),
          Effect.ensuring(Deferred.interrupt(opened)),
          Effect.ensuring(Effect.sync(() => conversations.check(conversation)))
        )

      /** Starts `drive` in this service's scope. */
      const launch = Effect.fnUntraced(function* (
        conversation: Conversation,
        request: RunRequest,
        opened: Deferred.Deferred<void, AidreamError>
      ) {
        conversation.runs++
        const fiber = yield* Effect.forkIn(drive(conversation, request, opened), scope, { startImmediately: true })
        const fibers = driving.get(conversation) ?? new Set()
        driving.set(conversation, fibers.add(fiber))
        fiber.addObserver(() => {
          fibers.delete(fiber)
          if (fibers.size === 0) driving.delete(conversation)
        })
        return fiber
      }, Effect.uninterruptible)

      const resume = Effect.fnUntraced(function* (signal: ContinuationSignal) {
        const { conversationId, userRequestId } = signal
        const conversation = conversations.get(conversationId)
        const record = (yield* records.get(conversationId)) ?? unknownRun(conversationId)
        const opened = Deferred.makeUnsafe<void, AidreamError>()
        const fiber = yield* launch(
          conversation,
          {
            purpose: "resume",
            record,
            owed: continuationKey(conversationId, userRequestId),
            open: ({ client, context }) =>
              api.resume(
                conversationId,
                ResumeRequest.make({ ...record.options, client, context, user_request_id: userRequestId ?? null })
              )
          },
          opened
        )
        yield* Deferred.await(opened).pipe(Effect.onInterrupt(() => Fiber.interrupt(fiber)))
      })

      yield* continuations.attach(resume)

      const cancel = Effect.fnUntraced(function* (conversation: Conversation) {
        conversation.holds++
        conversations.beginTurn(conversation)
        yield* continuations.cancel(conversation)
        yield* dispatcher.cancel(conversation)
        if (conversation.runId !== undefined) {
          yield* Effect.ignore(api.cancel(conversation.runId), { log: true })
        }
        yield* Fiber.interruptAll(driving.get(conversation) ?? [])
        conversation.outcome = "cancelled"
        conversations.endTurn(conversation, "cancelled")
        conversation.holds--
        conversations.check(conversation)
      }, Effect.uninterruptible)

      const start = Effect.fnUntraced(function* (input: RunInput) {
        const { message, variables } = input
        const isNew = input.conversationId === undefined || input.isNew === true
        const conversationId = input.conversationId ?? (yield* newConversationId)
        const conversation = conversations.get(conversationId)
        const unanswered = [...conversation.calls.keys()]
        if (unanswered.length > 0) {
          if (input.whenSuspended !== "cancel") {
            const reason = new TurnSuspended({ callIds: unanswered })
            return yield* new AidreamError({ endpoint: isNew ? "start" : "continue", reason })
          }
          yield* cancel(conversation)
        }

        const current = conversations.get(conversationId)
        current.holds++
        conversations.endTurn(current, "superseded")
        conversations.beginTurn(current)
        active.beginTurn(conversationId)
        return yield* Effect.gen(function* () {
          yield* continuations.cancel(current)
          const events = yield* conversations.subscribe(conversationId)
          yield* funnel.supersede(conversationId)
          const previous = yield* records.get(conversationId)
          const options = input.options ?? {}
          const body = {
            ...options,
            user_input: message ?? null,
            ...(variables === undefined ? {} : { variables })
          }
          const opened = Deferred.makeUnsafe<void, AidreamError>()
          yield* launch(
            current,
            {
              purpose: isNew ? "start" : "continue",
              owed: undefined,
              record: {
                conversationId,
                runId: undefined,
                mode: input.mode ?? "ask",
                initiator: input.initiator ?? "agent",
                agentName: input.agentName,
                pinnedTab: undefined,
                trustedHosts: previous?.trustedHosts ?? [],
                options
              },
              open: ({ client, context }) =>
                isNew
                  ? api.start(
                      input.agentId,
                      StartRequest.make({ ...body, client, context, conversation_id: conversationId, is_new: true }),
                      { isVersion: input.isVersion ?? false }
                    )
                  : api.continue(conversationId, ContinueRequest.make({ ...body, client, context }))
            },
            opened
          )
          yield* Deferred.await(opened)
          return Stream.fromQueue(events)
        }).pipe(Effect.ensuring(unhold(current)))
      })

      const unhold = (conversation: Conversation) =>
        Effect.sync(() => {
          conversation.holds--
          conversations.check(conversation)
        })

      const open = Effect.fnUntraced(function* (conversationId: ConversationId, options?: OpenOptions) {
        const conversation = conversations.get(conversationId)
        conversation.holds++
        return yield* Effect.gen(function* () {
          const events = yield* conversations.subscribe(conversationId)
          // A live stream of this session brings its own delegations.
          if (conversation.runs === 0) {
            yield* dispatcher.recover(conversationId)
            yield* funnel.replay(conversationId)
            const pending = yield* api.pendingCalls(conversationId)
            const pin = yield* capabilities.pin
            const last = (yield* records.get(conversationId)) ?? unknownRun(conversationId)
            const record = { ...last, mode: options?.mode ?? last.mode, pinnedTab: pin.tabId, trustedHosts: [] }
            for (const call of pending) yield* dispatcher.dispatch(delegationOfPending(call), record)
            if (options?.resume === true && pending.length === 0 && conversation.calls.size === 0) {
              yield* continuations.offer({ conversationId, userRequestId: undefined, turn: undefined })
            }
          }
          return Stream.fromQueue(events)
        }).pipe(Effect.ensuring(unhold(conversation)))
      })

      return AgentRuns.of({
        run: (input) => Stream.unwrap(start(input)),
        open: (conversationId, options) => Stream.unwrap(open(conversationId, options)),
        cancel: (conversationId) => Effect.suspend(() => cancel(conversations.get(conversationId))),
        recover: Effect.andThen(dispatcher.recover(), funnel.replay()),
        setMode: (conversationId, mode) =>
          Effect.ignore(
            records.update(conversationId, (record) => ({ ...record, mode })),
            { log: true }
          )
      })
    })
  )
}

/** A run about to be opened. */
interface RunRequest {
  readonly purpose: "start" | "continue" | "resume"
  readonly record: Omit<RunRecord, "since">
  /** The obligation that a complete end pays. */
  readonly owed: string | undefined
  readonly open: (envelope: Envelope) => Effect.Effect<OpenRun, AidreamError, Scope.Scope>
}

const newConversationId = Effect.sync(() => ConversationId.make(crypto.randomUUID()))
