import { Clock, type Duration, Effect } from "effect"
import { Prompt } from "effect/ai"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import { SUSPENDED } from "../../domain/aidream/RunEnd.ts"
import { type Agent, systemPrompt } from "./Agents.ts"
import type { ResolvedClient } from "./Capabilities.ts"
import type { CurrentRun } from "./CurrentRun.ts"
import type { Journal } from "./Journal.ts"
import type { RunKey, Step, TurnLimits } from "./Ledger.ts"
import { askModel, type ModelAnswer, type ToolChoice } from "./ModelStep.ts"
import type { ChosenModel } from "./Models.ts"
import { RunFailure } from "./RunFailure.ts"
import type { RunStream } from "./RunStream.ts"
import type { RunTools } from "./RunTools.ts"
import type { ServerTool } from "./ServerTools.ts"
import * as ToolChanges from "./ToolChanges.ts"
import { announceDelegated, idsOf, isDelegated, planCall, runCall } from "./ToolRunner.ts"
import { encodeMessage, rebuild, resultPart } from "./Transcript.ts"

/** Everything one run needs. */
export interface RunInput {
  readonly key: RunKey
  readonly owner: string
  readonly agent: Agent
  readonly chosen: ChosenModel
  readonly client: ResolvedClient
  readonly tools: RunTools
  readonly serverTools: ReadonlyArray<ServerTool>
  readonly variables: JsonObject
  readonly context: JsonObject
  readonly toolChoice: ToolChoice | undefined
  readonly limits: TurnLimits
  /** Model answers of the turn before this run. */
  readonly iteration: number
  readonly providerBackoff: Duration.Input
  readonly journal: Journal
  readonly stream: RunStream
  /** Called when the turn is about to leave this run: its lease must not be prolonged any more. */
  readonly windDown: () => void
}

/** How a run that reached its end left the turn. */
export type RunResult = "completed" | "suspended"

/**
 * Model and tools in turns, until the model is done or calls go to the client.
 *
 * What a suspension writes, and when, is part 10.6: the server's tools of the
 * iteration first, then all client calls in one commit, then their announcement,
 * then `paused`.
 */
export const runTurn = Effect.fnUntraced(function* (input: RunInput) {
  const { journal, key, stream, tools } = input
  const changes = ToolChanges.make()
  stream.emit({ _tag: "phase", data: { phase: "processing" } })
  stream.emit({
    _tag: "record_reserved",
    data: {
      table: "user_request",
      record_id: key.userRequestId,
      status: "pending",
      parent_refs: { conversation_id: key.conversationId }
    }
  })
  const conversation = { type: "conversation_id", conversation_id: key.conversationId }
  stream.emit({ _tag: "data", data: conversation })
  stream.emit({ _tag: "init", data: { operation: "user_request", operation_id: key.userRequestId } })

  const transcript = yield* journal.transcript
  const messages = yield* rebuild(transcript, key.userRequestId)
  const system = systemPrompt(input.agent, input.variables, input.context)
  if (system !== "") messages.unshift(Prompt.systemMessage({ content: system }))
  const taken = new Set(transcript.calls.keys())

  for (let iteration = input.iteration + 1; ; iteration++) {
    if (iteration > input.limits.maxIterations) {
      return yield* new RunFailure({
        type: "max_iterations",
        text: `the turn has had ${input.limits.maxIterations} answers of the model`
      })
    }
    yield* drain(input, changes)
    const active = input.chosen.tools ? tools.current().tools : []

    const operationId = yield* newId
    stream.emit({
      _tag: "init",
      data: { operation: "llm_request", operation_id: operationId, parent_operation_id: key.userRequestId }
    })
    stream.emit({ _tag: "phase", data: { phase: "generating" } })
    const answer = yield* askModel({
      chosen: input.chosen,
      messages,
      tools: active,
      toolChoice: input.toolChoice,
      retries: input.limits.maxRetries,
      backoff: input.providerBackoff,
      stream,
      isTaken: (id) => taken.has(id)
    })
    stream.emit({
      _tag: "completion",
      data: { operation: "llm_request", operation_id: operationId, status: "success" }
    })

    if (answer.calls.length === 0) {
      yield* complete(input, answer, iteration)
      return "completed" as const
    }

    for (const { id } of answer.calls) taken.add(id)
    if (answer.message !== undefined) messages.push(answer.message)
    const planned = yield* Effect.forEach(answer.calls, (call) => planCall(call, active, input.serverTools))
    const step = yield* stepOf(answer, iteration, planned)
    const delegated = planned.filter(isDelegated)
    const own = planned.filter((call) => !isDelegated(call))

    if (own.length > 0) {
      // Written down before they run: after a crash nobody may run them a second time.
      yield* journal.step(step)
      stream.emit({ _tag: "phase", data: { phase: "using_tools" } })
      const run: CurrentRun["Service"] = {
        conversationId: key.conversationId,
        userRequestId: key.userRequestId,
        runId: key.runId,
        owner: input.owner,
        client: input.client,
        tools: active,
        changes
      }
      const results = yield* Effect.forEach(own, (call) => runCall(call, run, journal, stream), {
        concurrency: "unbounded"
      })
      if (delegated.length === 0) {
        messages.push(
          Prompt.toolMessage({
            content: results.map(({ id, outcome }) =>
              resultPart({ id, name: answer.calls.find((call) => call.id === id)?.name ?? id }, outcome)
            )
          })
        )
        continue
      }
    }

    input.windDown()
    const pendingIds = idsOf(delegated)
    yield* journal.delegate(pendingIds, own.length > 0 ? undefined : step)
    announceDelegated(delegated, key, yield* Clock.currentTimeMillis, stream)
    yield* suspend(input, iteration, pendingIds)
    return "suspended" as const
  }
})

const newId = Effect.sync(() => globalThis.crypto.randomUUID())

const stepOf = Effect.fnUntraced(function* (
  answer: ModelAnswer,
  iteration: number,
  planned: ReadonlyArray<{ readonly entry: Step["calls"][number] }>
) {
  return {
    iteration,
    messageId: yield* newId,
    message: encodeMessage(answer.message ?? Prompt.assistantMessage({ content: [] })),
    calls: planned.map(({ entry }) => entry),
    usage: answer.usage
  } satisfies Step
})

/** Makes the changes tools have asked for, and says so (part 10.4). */
const drain = Effect.fnUntraced(function* (input: RunInput, changes: ToolChanges.ToolChanges) {
  const { changed, problems } = input.tools.drain(changes)
  const [problem] = problems
  if (problem !== undefined) return yield* new RunFailure({ type: problem.code, text: problem.message })
  if (changed === undefined) return
  input.stream.emit({
    _tag: "resource_changed",
    data: {
      kind: "active_tools",
      action: "invalidated",
      resource_id: input.key.conversationId,
      metadata: {
        added_tools: changed.added,
        removed_tools: changed.removed,
        active_count: changed.activeCount,
        added: changed.added.length,
        removed: changed.removed.length,
        sources: changed.sources
      }
    }
  })
})

const complete = Effect.fnUntraced(function* (input: RunInput, answer: ModelAnswer, iteration: number) {
  const { journal, key, stream } = input
  input.windDown()
  yield* journal.finish({
    status: "completed",
    step: answer.message === undefined ? undefined : yield* stepOf(answer, iteration, []),
    metadata: { status: "completed", iteration }
  })
  stream.emit({
    _tag: "completion",
    data: {
      operation: "user_request",
      operation_id: key.userRequestId,
      status: "success",
      result: { status: "completed", iteration }
    }
  })
  stream.emit({ _tag: "phase", data: { phase: "complete" } })
  stream.emit({ _tag: "end", data: { reason: "complete" } })
})

const suspend = Effect.fnUntraced(function* (
  { journal, key, stream }: RunInput,
  iteration: number,
  pendingIds: ReadonlyArray<string>
) {
  const metadata = { status: SUSPENDED, pending_call_ids: pendingIds, iteration }
  stream.emit({ _tag: "phase", data: { phase: "complete" } })
  stream.emit({
    _tag: "info",
    data: {
      code: SUSPENDED,
      system_message: `The run is suspended until ${pendingIds.length} delegated calls are answered.`,
      metadata: { ...metadata, will_continue: false }
    }
  })
  yield* journal.pause(metadata)
  stream.emit({
    _tag: "completion",
    data: {
      operation: "user_request",
      operation_id: key.userRequestId,
      status: "success",
      result: { status: SUSPENDED, iteration }
    }
  })
  stream.emit({ _tag: "end", data: { reason: "complete" } })
})
