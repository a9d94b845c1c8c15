import { Clock, Effect } from "effect"
import { isJsonObject } from "../../domain/aidream/Absent.ts"
import type { CallId } from "../../domain/aidream/Ids.ts"
import { closeNames, sameTool, toWireName } from "../../domain/aidream/ToolIdentity.ts"
import { CurrentRun } from "./CurrentRun.ts"
import type { Journal } from "./Journal.ts"
import type { NewCall } from "./Ledger.ts"
import type { ModelCall } from "./ModelStep.ts"
import type { RunStream } from "./RunStream.ts"
import { failure, type ServerTool, type ToolOutcome } from "./ServerTools.ts"
import type { ActiveTool } from "./ToolMerge.ts"

/** A call of the model and what becomes of it. */
export interface PlannedCall {
  readonly call: ModelCall
  readonly entry: NewCall
  readonly plan:
    | { readonly _tag: "Delegate"; readonly tool: ActiveTool }
    | { readonly _tag: "Run"; readonly tool: ServerTool }
    /** Answered without anybody running anything. */
    | { readonly _tag: "Refuse"; readonly outcome: ToolOutcome }
}

/** Decides who runs a call, by the routing of this iteration; names are compared as the model knows them. */
export const planCall = Effect.fnUntraced(function* (
  call: ModelCall,
  tools: ReadonlyArray<ActiveTool>,
  serverTools: ReadonlyArray<ServerTool>
) {
  const tool = tools.find(({ wireName }) => sameTool(wireName, call.name))
  const route = tool?.route
  const isClient = route?._tag === "Client"
  const entry: NewCall = {
    id: yield* Effect.sync(() => globalThis.crypto.randomUUID()),
    callId: call.id,
    toolName: tool?.name ?? call.name,
    calledName: call.name,
    arguments: isJsonObject(call.params) ? call.params : {},
    executor: isClient ? route.executor : undefined,
    targetInstanceId: isClient ? route.targetInstanceId : undefined
  }
  return { call, entry, plan: planOf(call, tool, serverTools, tools) } satisfies PlannedCall
})

const planOf = (
  call: ModelCall,
  tool: ActiveTool | undefined,
  serverTools: ReadonlyArray<ServerTool>,
  tools: ReadonlyArray<ActiveTool>
): PlannedCall["plan"] => {
  if (tool === undefined) {
    const close = closeNames(
      toWireName(call.name),
      tools.map(({ wireName }) => wireName)
    )
    const hint = close.length === 0 ? "" : ` Close names: ${close.join(", ")}.`
    return {
      _tag: "Refuse",
      outcome: failure("tool_not_found", `There is no tool "${call.name}" in this conversation.${hint}`)
    }
  }
  if (tool.route._tag === "Client") {
    // A provider may leave the arguments out; anything but an object cannot be handed to a client.
    return call.params === undefined || call.params === null || isJsonObject(call.params)
      ? { _tag: "Delegate", tool }
      : { _tag: "Refuse", outcome: failure("invalid_arguments", "The arguments must be a JSON object.") }
  }
  const served = serverTools.find(({ name }) => sameTool(name, tool.wireName))
  return served === undefined
    ? { _tag: "Refuse", outcome: failure("tool_not_found", `The server cannot run "${call.name}".`) }
    : { _tag: "Run", tool: served }
}

/** Runs one call on the server, writes its outcome down, then tells the reader. */
export const runCall = Effect.fnUntraced(function* (
  planned: PlannedCall,
  run: CurrentRun["Service"],
  journal: Journal,
  stream: RunStream
) {
  const { call, plan } = planned
  const about = { call_id: call.id, tool_name: toWireName(call.name) }
  if (plan._tag === "Run") {
    stream.emit({
      _tag: "tool_event",
      data: { ...about, event: "tool_started", data: { arguments: planned.entry.arguments } }
    })
  }
  const startedAt = yield* Clock.currentTimeMillis
  const outcome =
    plan._tag === "Run"
      ? yield* plan.tool
          .run(call.params ?? {}, {
            id: call.id,
            onPreview: (preview) =>
              Effect.sync(() =>
                stream.emit({ _tag: "tool_event", data: { ...about, event: "tool_result_preview", data: { preview } } })
              )
          })
          .pipe(Effect.provideService(CurrentRun, run))
      : plan._tag === "Refuse"
        ? plan.outcome
        : failure("tool_not_found", "this call is not the server's")

  yield* journal.settle(call.id, outcome, {
    durationMillis: (yield* Clock.currentTimeMillis) - startedAt,
    loadedTools: namesToAdd(run)
  })
  stream.emit({
    _tag: "tool_event",
    data: outcome.isError
      ? {
          ...about,
          event: "tool_error",
          message: outcome.errorMessage ?? null,
          data: {
            error_type: outcome.errorType ?? "tool_failed",
            detail: outcome.output ?? outcome.errorMessage ?? null
          }
        }
      : { ...about, event: "tool_completed", data: { result: outcome.output ?? null } }
  })
  return { id: call.id, outcome }
})

/** Catalog tools that are about to join the set: they belong to the turn from now on, whatever happens to the run. */
const namesToAdd = (run: CurrentRun["Service"]): ReadonlyArray<string> =>
  run.changes
    .peek()
    .flatMap((change) => (change.action === "add" ? change.specs : []))
    .flatMap((spec) => (spec.kind === "registered" ? [spec.name] : []))

/** Tells the client to run calls. Only after the ledger has them. */
export const announceDelegated = (
  calls: ReadonlyArray<PlannedCall & { readonly plan: { readonly _tag: "Delegate" } }>,
  about: { readonly conversationId: string; readonly userRequestId: string },
  timestamp: number,
  stream: RunStream
) => {
  for (const { call, entry } of calls) {
    stream.emit({
      _tag: "record_reserved",
      data: {
        table: "tool_call",
        record_id: entry.id,
        status: "pending",
        parent_refs: {
          conversation_id: about.conversationId,
          user_request_id: about.userRequestId,
          call_id: call.id
        }
      }
    })
  }
  for (const { call, entry, plan } of calls) {
    stream.emit({
      _tag: "tool_event",
      data: {
        event: "tool_delegated",
        call_id: call.id,
        tool_name: plan.tool.wireName,
        ...(entry.toolName.includes(":") ? { canonical_name: entry.toolName } : {}),
        timestamp: timestamp / 1000,
        show_spinner: true,
        data: {
          arguments: entry.arguments,
          ...(entry.targetInstanceId === undefined ? {} : { target_instance_id: entry.targetInstanceId })
        }
      }
    })
  }
}

export const isDelegated = (
  planned: PlannedCall
): planned is PlannedCall & { readonly plan: { readonly _tag: "Delegate" } } => planned.plan._tag === "Delegate"

/** The calls of a model's answer, in its order. */
export const idsOf = (calls: ReadonlyArray<PlannedCall>): ReadonlyArray<CallId> => calls.map(({ call }) => call.id)
