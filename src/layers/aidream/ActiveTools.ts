import { Context, Layer, Option, Schema } from "effect"
import { isJsonObject } from "../../domain/aidream/Absent.ts"
import type { CallId, ConversationId } from "../../domain/aidream/Ids.ts"
import type { StreamEvent } from "../../domain/aidream/StreamEvent.ts"
import { resolveTool } from "../../domain/aidream/ToolIdentity.ts"

/** What the model of a conversation can use at the moment. */
export interface ActiveToolSet {
  /** Names the backend added and has not removed again in this turn. The always-on ones are not told. */
  readonly tools: ReadonlyArray<string>
  /** The backend's own count, for a badge. */
  readonly count: number | undefined
  /** Categories whose tools were loaded in this conversation: a hint for the next request. */
  readonly categories: ReadonlyArray<string>
}

/**
 * The live tool set of each conversation (part 10.4).
 *
 * Built from the differences in `resource_changed` and from what the loader reports.
 * Sets hold for one turn; loaded categories for the conversation.
 */
export class ActiveTools extends Context.Service<
  ActiveTools,
  {
    readonly observe: (conversationId: ConversationId, event: StreamEvent) => void
    readonly of: (conversationId: ConversationId) => ActiveToolSet
    /** A new turn starts again at the always-on tools. */
    readonly beginTurn: (conversationId: ConversationId) => void
    readonly reset: (conversationId: ConversationId) => void
  }
>()("effect-frontend-tools/layers/aidream/ActiveTools") {
  static readonly layer = Layer.sync(ActiveTools, () => {
    const conversations = new Map<ConversationId, State>()

    const stateOf = (id: ConversationId): State => {
      const existing = conversations.get(id)
      if (existing !== undefined) return existing
      const state: State = { tools: new Set(), categories: new Set(), loading: new Map(), count: undefined }
      conversations.set(id, state)
      return state
    }

    return ActiveTools.of({
      observe: (id, event) => {
        if (event._tag === "resource_changed" && event.data.kind === "active_tools") {
          applyChange(stateOf(id), event.data.metadata)
        } else if (event._tag === "tool_event" && isLoader(event.data)) {
          applyLoader(stateOf(id), event.data)
        }
      },
      of: (id) => {
        const state = conversations.get(id)
        return {
          tools: [...(state?.tools ?? [])],
          count: state?.count,
          categories: [...(state?.categories ?? [])]
        }
      },
      beginTurn: (id) => {
        const state = conversations.get(id)
        state?.tools.clear()
        state?.loading.clear()
        if (state !== undefined) state.count = undefined
      },
      reset: (id) => {
        conversations.delete(id)
      }
    })
  })
}

interface State {
  readonly tools: Set<string>
  readonly categories: Set<string>
  /** Categories asked for by loader calls under way. */
  readonly loading: Map<CallId, string>
  count: number | undefined
}

type ToolData = Extract<StreamEvent, { readonly _tag: "tool_event" }>["data"]

const Change = Schema.Struct({
  added_tools: Schema.optionalKey(Schema.Array(Schema.String)),
  removed_tools: Schema.optionalKey(Schema.Array(Schema.String)),
  active_count: Schema.optionalKey(Schema.Finite)
})
const decodeChange = Schema.decodeUnknownOption(Change)

const applyChange = (state: State, metadata: unknown) => {
  const change = Option.getOrUndefined(decodeChange(metadata))
  if (change === undefined) return
  for (const name of change.removed_tools ?? []) state.tools.delete(name)
  for (const name of change.added_tools ?? []) state.tools.add(name)
  state.count = change.active_count ?? state.count
}

/** Tools of the backend that load others. */
const loaders: ReadonlySet<string> = new Set(["load_chrome_tools", "load_desktop_tools"])

const isLoader = (data: ToolData): boolean =>
  resolveTool(
    { toolName: data.tool_name, canonicalName: data.canonical_name ?? undefined },
    { has: (name) => loaders.has(name), foreignNamespaces: [], foreignPrefixes: [] }
  )._tag === "Local"

const Loaded = Schema.Struct({
  category: Schema.optionalKey(Schema.NullOr(Schema.String)),
  tools_loaded: Schema.NonEmptyArray(Schema.String)
})
const decodeLoaded = Schema.decodeUnknownOption(Loaded)

const applyLoader = (state: State, data: ToolData) => {
  const inner = isJsonObject(data.data) ? data.data : {}
  if (data.event === "tool_started") {
    const category = isJsonObject(inner.arguments) ? inner.arguments.category : undefined
    if (typeof category === "string") state.loading.set(data.call_id, category)
    return
  }
  if (data.event !== "tool_completed") return
  const asked = state.loading.get(data.call_id)
  state.loading.delete(data.call_id)
  // A loader that loaded nothing (all filtered, or refused) leaves no category behind.
  const loaded = Option.getOrUndefined(decodeLoaded(inner.result))
  if (loaded === undefined) return
  const category = loaded.category ?? asked
  if (category !== undefined) state.categories.add(category)
}
