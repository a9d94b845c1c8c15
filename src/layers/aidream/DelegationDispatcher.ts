import { Cause, Clock, Context, Duration, Effect, Exit, FiberMap, Layer } from "effect"
import { errorResult, lostResult, unknownToolResult, valueResult } from "../../domain/aidream/CallResult.ts"
import type { Delegation } from "../../domain/aidream/Delegation.ts"
import { type ConversationId, keyOf } from "../../domain/aidream/Ids.ts"
import { needsApproval } from "../../domain/aidream/Tier.ts"
import { resolveTool } from "../../domain/aidream/ToolIdentity.ts"
import type { ClientToolResult } from "../../domain/aidream/ToolResults.ts"
import { AidreamConfig } from "./AidreamConfig.ts"
import { Approvals } from "./Approvals.ts"
import { CallGates, CallRefused } from "./CallGates.ts"
import { CallJournal, type JournalEntry } from "./CallJournal.ts"
import { type Conversation, Conversations } from "./Conversations.ts"
import { ResultsFunnel } from "./ResultsFunnel.ts"
import { type RunRecord, RunRecords, unknownRun } from "./RunRecords.ts"
import { type LibraryTool, type PreparedCall, ToolFailure } from "./Tool.ts"
import { ToolLibrary } from "./ToolLibrary.ts"

/**
 * Runs what the backend delegates (part 6).
 *
 * A call runs at most once, whatever brought it here and however often. It runs in
 * the dispatcher's own scope: the stream that delegated it has usually ended by then.
 * Every call of ours gets exactly one answer; a call of another executor gets none.
 */
export class DelegationDispatcher extends Context.Service<
  DelegationDispatcher,
  {
    /** Takes a call. Decides at once whether it is ours and new; never waits for it. */
    readonly dispatch: (delegation: Delegation, record: RunRecord) => Effect.Effect<void>
    /** Goes on with what an earlier process left in the journal. */
    readonly recover: (conversationId?: ConversationId) => Effect.Effect<void>
    /** Stops the conversation's calls and answers them as stopped. */
    readonly cancel: (conversation: Conversation) => Effect.Effect<void>
  }
>()("effect-frontend-tools/layers/aidream/DelegationDispatcher") {
  static readonly layer = Layer.effect(
    DelegationDispatcher,
    Effect.gen(function* () {
      const config = yield* AidreamConfig
      const library = yield* ToolLibrary
      const gates = yield* CallGates
      const approvals = yield* Approvals
      const journal = yield* CallJournal
      const records = yield* RunRecords
      const funnel = yield* ResultsFunnel
      const conversations = yield* Conversations
      const working = yield* FiberMap.make<string>()
      const window = Duration.toMillis(config.approvalWindow)
      const ownership = {
        has: (name: string) => library.lookup(name) !== undefined,
        instanceId: config.instanceId,
        foreignNamespaces: config.foreignNamespaces,
        foreignPrefixes: config.foreignPrefixes
      }

      let closing = false
      // Added after the fibers, so it runs before they are interrupted.
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          closing = true
        })
      )

      const known = new Set<string>()
      const stopped = new Set<string>()

      const remember = (key: string) => {
        known.add(key)
        for (const oldest of known) {
          if (known.size <= config.dedupeCapacity) break
          // A call under way must stay known, however old it is.
          if (!FiberMap.hasUnsafe(working, oldest)) known.delete(oldest)
        }
      }

      const answer = Effect.fnUntraced(function* (delegation: Delegation, turn: number, result: ClientToolResult) {
        const { conversationId, userRequestId } = delegation
        conversations.publish(conversationId, { _tag: "CallFinished", result })
        yield* Effect.ignore(journal.finished(delegation, result), { log: true })
        yield* funnel.submit({ conversationId, userRequestId, turn, result })
      })

      /** Asks the person when the call needs it. Fails when the answer is no. */
      const approve = Effect.fnUntraced(function* (
        delegation: Delegation,
        tool: LibraryTool,
        prepared: PreparedCall,
        record: RunRecord,
        askUntil: number | undefined
      ) {
        const { conversationId, callId } = delegation
        const latest = delegation.source === "live" ? yield* records.get(conversationId) : undefined
        const rule = {
          tier: prepared.tier,
          mode: record.mode,
          initiator: record.initiator,
          hostTrusted: prepared.host !== undefined && (latest?.trustedHosts.includes(prepared.host) ?? false),
          authorized: delegation.executionAuthorization !== undefined
        }
        if (askUntil === undefined && !needsApproval(rule)) return
        const expiresAt = askUntil ?? (yield* Clock.currentTimeMillis) + window
        yield* Effect.ignore(journal.asking(delegation, expiresAt), { log: true })
        conversations.publish(conversationId, { _tag: "ApprovalAsked", callId, tier: prepared.tier, expiresAt })
        const given = yield* approvals.ask({
          conversationId,
          callId,
          tool: tool.name,
          tier: prepared.tier,
          arguments: delegation.arguments,
          agentName: record.agentName,
          host: prepared.host,
          authorization: delegation.executionAuthorization,
          expiresAt
        })
        if (given._tag === "Denied") return yield* new CallRefused({ message: "The user denied this call." })
        if (given._tag === "Expired") {
          return yield* new CallRefused({ message: "Denied: the approval timed out, nobody answered." })
        }
        const { host } = prepared
        if (given.remember && host !== undefined && prepared.tier === "action") {
          const trust = (run: RunRecord): RunRecord => ({ ...run, trustedHosts: [...run.trustedHosts, host] })
          yield* Effect.ignore(records.update(conversationId, trust), { log: true })
        }
      })

      /** Passes the gates, runs the tool and makes the answer. Interruptible only where `restore` says so. */
      const execute = Effect.fnUntraced(function* (
        delegation: Delegation,
        tool: LibraryTool,
        record: RunRecord,
        askUntil: number | undefined,
        restore: Restore
      ) {
        const prepared = yield* restore(
          gates
            .pass(tool, delegation, record)
            .pipe(Effect.tap((accepted) => approve(delegation, tool, accepted, record, askUntil)))
        )
        // What can't be recorded must not run: after a crash nobody would know that it did.
        yield* Effect.mapError(
          journal.running(delegation),
          () => new CallRefused({ message: "The call was not run: the client can't record it." })
        )
        const { conversationId, callId } = delegation
        conversations.publish(conversationId, { _tag: "CallStarted", callId, tool: tool.name })
        const call = { conversationId, callId, mode: record.mode, pinnedTab: record.pinnedTab }
        const began = yield* Clock.currentTimeMillis
        const exit = yield* Effect.exit(restore(limited(tool, prepared.run(call))))
        const durationMillis = (yield* Clock.currentTimeMillis) - began
        if (Exit.isSuccess(exit)) return valueResult(delegation, exit.value, durationMillis, config.maxResultLength)
        if (Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.interrupt
        return failureResult(delegation, exit.cause, durationMillis)
      })

      const work = (
        delegation: Delegation,
        tool: LibraryTool,
        record: RunRecord,
        turn: number,
        askUntil: number | undefined
      ) => {
        const key = keyOf(delegation.conversationId, delegation.callId)
        const interrupted = Effect.suspend(() => {
          // Closing the client is no answer: what ran is found in the journal next time.
          if (closing) return Effect.void
          const ran = journal.get(delegation.conversationId, delegation.callId)?._tag === "Running"
          const message = !stopped.has(key) ? INTERRUPTED : ran ? STOPPED_WHILE_RUNNING : STOPPED
          return answer(delegation, turn, errorResult(delegation, message))
        })
        // The outcome of a tool that ran is recorded and handed on even when its caller gives up then.
        return Effect.uninterruptibleMask((restore) =>
          execute(delegation, tool, record, askUntil, restore).pipe(
            Effect.catchTag("CallRefused", ({ message }) => Effect.succeed(errorResult(delegation, message))),
            Effect.catchDefect((defect) =>
              Effect.succeed(errorResult(delegation, `The client failed: ${messageOf(defect)}`))
            ),
            Effect.flatMap((result) => answer(delegation, turn, result)),
            Effect.onInterrupt(() => interrupted)
          )
        )
      }

      /** Goes on with a call from where the journal says it is. */
      const adopt = (delegation: Delegation, record: RunRecord, entry: JournalEntry | undefined) =>
        Effect.suspend(() => {
          const { conversationId, callId, toolName, canonicalName, targetInstanceId, userRequestId } = delegation
          const key = keyOf(conversationId, callId)
          const resolution = resolveTool({ toolName, canonicalName, targetInstanceId }, ownership)
          const unanswered = entry === undefined || entry._tag === "Received" || entry._tag === "Asking"
          if (resolution._tag === "Foreign" && unanswered) {
            const { owner } = resolution
            conversations.publish(conversationId, { _tag: "CallLeft", callId, toolName, owner })
            return Effect.void
          }

          remember(key)
          const conversation = conversations.get(conversationId)
          const { turn } = conversation
          conversation.calls.set(callId, { turn, userRequestId, phase: "working" })
          conversations.publish(conversationId, { _tag: "CallDelegated", delegation })

          if (entry?._tag === "Finished") {
            return funnel.submit({ conversationId, userRequestId, turn, result: entry.result })
          }
          if (entry?._tag === "Running") return answer(delegation, turn, lostResult(delegation))
          const tool = resolution._tag === "Local" ? library.lookup(resolution.name) : undefined
          if (tool === undefined) {
            const names = library.list().map(({ name }) => name)
            return answer(delegation, turn, unknownToolResult(delegation, names, config.toolHint))
          }
          const askUntil = entry?._tag === "Asking" ? entry.expiresAt : undefined
          return Effect.ignore(askUntil === undefined ? journal.received(delegation) : Effect.void, { log: true }).pipe(
            Effect.andThen(work(delegation, tool, record, turn, askUntil)),
            FiberMap.run(working, key, { startImmediately: true }),
            Effect.asVoid
          )
        })

      return DelegationDispatcher.of({
        dispatch: (delegation, record) =>
          Effect.suspend(() => {
            const { conversationId, callId } = delegation
            const entry = journal.get(conversationId, callId)
            if (!known.has(keyOf(conversationId, callId))) return adopt(delegation, record, entry)
            const duplicate = Effect.logDebug(`call ${callId} is known already`)
            // Its answer may have been lost on the way: offer it again rather than run it again.
            return entry?._tag === "Finished" ? Effect.andThen(duplicate, funnel.replay(conversationId)) : duplicate
          }),
        recover: (conversationId) =>
          Effect.suspend(() =>
            Effect.forEach(
              journal
                .entries(conversationId)
                .filter(({ delegation }) => !known.has(keyOf(delegation.conversationId, delegation.callId))),
              (entry) =>
                Effect.flatMap(records.get(entry.delegation.conversationId), (record) =>
                  adopt(entry.delegation, record ?? unknownRun(entry.delegation.conversationId), entry)
                ),
              { discard: true }
            )
          ),
        cancel: (conversation) =>
          Effect.suspend(() => {
            const keys = [...conversation.calls.keys()]
              .map((callId) => keyOf(conversation.id, callId))
              .filter((key) => FiberMap.hasUnsafe(working, key))
            for (const key of keys) stopped.add(key)
            return Effect.forEach(
              keys,
              (key) =>
                Effect.andThen(
                  FiberMap.remove(working, key),
                  Effect.sync(() => stopped.delete(key))
                ),
              { discard: true, concurrency: "unbounded" }
            )
          })
      })
    })
  )
}

type Restore = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

const INTERRUPTED = "The tool was interrupted. It may have taken effect."
const STOPPED = "The user stopped the turn before this tool ran."
const STOPPED_WHILE_RUNNING = "The user stopped the turn while this tool ran. It may have taken effect."

const limited = (tool: LibraryTool, run: Effect.Effect<unknown, unknown>) =>
  tool.timeout === undefined
    ? run
    : Effect.timeoutOrElse(run, {
        duration: tool.timeout,
        orElse: () => Effect.fail(new ToolFailure({ message: `${tool.name} took too long and was stopped` }))
      })

const messageOf = (failure: unknown): string => {
  if (failure instanceof Error) return failure.message
  return typeof failure === "string" ? failure : "the tool failed"
}

const failureResult = (
  delegation: Delegation,
  cause: Cause.Cause<unknown>,
  durationMillis: number
): ClientToolResult => {
  const failure = Cause.squash(cause)
  const output = failure instanceof ToolFailure ? failure.output : undefined
  return errorResult(delegation, messageOf(failure), { durationMillis, output })
}
