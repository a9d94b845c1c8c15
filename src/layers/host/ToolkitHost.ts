/**
 * The host of a program that runs its own `LanguageModel`: one Layer for each way of
 * letting a write run.
 */
import { Context, Effect, Layer, Result, Stream } from "effect"
import { AiError, type Tool, type Toolkit } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import { Approval } from "./Approval.ts"
import type { CallOutcome } from "./CallOutcome.ts"
import { argumentsFailure, runTool, toolGone } from "./HostCall.ts"
import { type HostCatalog, type HostEntry, makeHostCatalog } from "./HostCatalog.ts"
import { type MirroredTool, makeMirroredTool } from "./MirroredTool.ts"
import { MirroredToolkit, type MirroredTools, type MirroredToolsWith, type ToolSelection } from "./MirroredToolkit.ts"
import { jsonSchemaProfile } from "./SchemaProfile.ts"
import { ToolHost } from "./ToolHost.ts"
import { askInConversation, askService, refuseWrites, type WritePolicy } from "./WritePolicy.ts"

/** The host for agents that only read: a write is refused, and the model is told so. */
export const layer: Layer.Layer<MirroredToolkit | ToolHost> = Layer.effectContext(
  Effect.suspend(() => make(refuseWrites))
)

/** A write waits for the program's `Approval`. */
export const layerApproval: Layer.Layer<MirroredToolkit | ToolHost, never, Approval> = Layer.effectContext(
  Effect.flatMap(Approval, (approval) => make(askService(approval)))
)

/**
 * A write is put to the person in the conversation: a generation ends with a
 * `tool-approval-request`, and the next one carries the answer (`Tool.needsApproval`).
 *
 * The question is remembered in this process and holds for this registration of the
 * tool. After a restart or a reload of the application, a yes is answered by the
 * request to ask anew. A conversation should keep one list (see `MirroredToolkit`):
 * `effect/ai` fails a generation whose answer is about a tool that is not on it.
 */
export const layerNeedsApproval: Layer.Layer<MirroredToolkit | ToolHost> = Layer.effectContext(
  Effect.suspend(() => make(askInConversation()))
)

type Offers = (tool: HostTool) => boolean

const offersAll: Offers = () => true

const offering = ({ namespaces, where }: ToolSelection = {}): Offers => {
  if (namespaces === undefined) return where ?? offersAll
  const chosen = new Set(namespaces)
  return (tool) => chosen.has(tool.namespace) && (where === undefined || where(tool))
}

const unknownTool = (toolName: string, tools: Record<string, Tool.Any>) =>
  AiError.make({
    module: "MirroredToolkit",
    method: "handle",
    reason: new AiError.ToolNotFoundError({ toolName, availableTools: Object.keys(tools) })
  })

// Without a prototype: a model may call a tool "constructor".
const recordOf = <A extends { readonly name: string }>(tools: ReadonlyArray<A>): Record<string, A> => {
  const record: Record<string, A> = Object.fromEntries(tools.map((tool) => [tool.name, tool]))
  Object.setPrototypeOf(record, null)
  return record
}

const make = Effect.fnUntraced(function* (policy: WritePolicy) {
  const profile = jsonSchemaProfile
  const { ask, decide } = policy

  /** Says whether a person has to be asked, and notes that they are. */
  const needsApproval =
    ask &&
    (({ publicName }: HostTool): Tool.NeedsApprovalFunction<MirroredTool["parametersSchema"]> =>
      (args, { toolCallId }) => {
        const entry = catalog.find(publicName)
        if (entry === undefined || entry.tool.access === "read") return false
        if (argumentsFailure(entry.tool, args, profile) !== undefined) return false
        ask({ tool: entry.tool, args, toolCallId, gone: entry.gone })
        return true
      })

  const catalog: HostCatalog<MirroredTool> = yield* makeHostCatalog({
    profile,
    show: (tool) => Result.succeed(makeMirroredTool(tool, needsApproval?.(tool)))
  })

  const run = (publicName: string, args: unknown, offers: Offers, toolCallId?: string): Effect.Effect<CallOutcome> =>
    Effect.suspend(() => {
      const entry = catalog.find(publicName)
      return entry !== undefined && offers(entry.tool)
        ? runTool(entry, args, { profile, decide, toolCallId })
        : Effect.succeed(toolGone(publicName))
    })

  const toolsOf = (listed: ReadonlyArray<HostEntry<MirroredTool>>, offers: Offers): MirroredTools => {
    const tools = recordOf(listed.filter(({ tool }) => offers(tool)).map(({ shown }) => shown))
    return {
      tools,
      handle: (publicName, args, toolCallId) =>
        publicName in tools
          ? Effect.map(run(publicName, args, offers, toolCallId), (outcome) => Stream.succeed(toHandlerResult(outcome)))
          : Effect.fail(unknownTool(publicName, tools))
    }
  }

  const tools = (selection?: ToolSelection) => {
    const offers = offering(selection)
    let listed: ReadonlyArray<HostEntry<MirroredTool>> | undefined
    let last: MirroredTools | undefined
    return Effect.sync(() => {
      const now = catalog.entries()
      if (last === undefined || listed !== now) {
        listed = now
        last = toolsOf(now, offers)
      }
      return last
    })
  }

  const toolkit = MirroredToolkit.of({
    tools,
    toolsWith: (own, selection) => Effect.map(tools(selection), (mirrored) => merge(own, mirrored)),
    call: (publicName, args, { toolCallId, ...selection } = {}) =>
      run(publicName, args, offering(selection), toolCallId),
    list: Effect.sync(() => catalog.entries().map(({ tool }) => tool)),
    changes: Stream.fromPubSub(catalog.changes)
  })

  return Context.make(ToolHost, { profile, register: catalog.register }).pipe(Context.add(MirroredToolkit, toolkit))
})

const toHandlerResult = (outcome: CallOutcome): Tool.HandlerResult<MirroredTool> => {
  if (outcome._tag === "Success") {
    return { result: outcome.value, encodedResult: outcome.value, isFailure: false, preliminary: false }
  }
  const { failure } = outcome
  return {
    result: failure,
    encodedResult: failure,
    isFailure: true,
    failureOrigin: failure.reason === "InvalidArguments" ? "parameters" : "handler",
    preliminary: false
  }
}

interface ToolCall<Own extends Record<string, Tool.Any>> {
  readonly name: keyof Own
  readonly params: Tool.ParametersEncoded<Own[keyof Own]>
}

// A toolkit decodes the parameters it is handed, so that those of a model can be any value.
const isCallOf = <Own extends Record<string, Tool.Any>>(
  tools: Own,
  call: { readonly name: PropertyKey; readonly params: unknown }
): call is ToolCall<Own> => Object.hasOwn(tools, call.name)

const merge = <Own extends Record<string, Tool.Any>>(
  own: Toolkit.WithHandler<Own>,
  mirrored: MirroredTools
): MirroredToolsWith<Own> => {
  const others = Object.values(mirrored.tools).filter(({ name }) => !Object.hasOwn(own.tools, name))
  const tools: Record<string, MirroredTool | Own[keyof Own]> = { ...own.tools, ...recordOf(others) }
  Object.setPrototypeOf(tools, null)
  return {
    tools,
    handle: (name, params, toolCallId, options) => {
      const call = { name, params }
      return isCallOf(own.tools, call)
        ? own.handle(call.name, call.params, toolCallId, options)
        : mirrored.handle(name, params, toolCallId, options)
    }
  }
}
