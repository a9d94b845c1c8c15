/**
 * The MCP revisions that Effect's server speaks, with tools that come and go.
 *
 * `McpServer` keeps what was added to it for ever and lists it in the order of
 * adding. A protocol adapter gets that list when its handlers are installed: here
 * each adapter gets one that is the server's own tools and, in their place among
 * them, whatever `tools` holds at that moment.
 */
import { Effect, Predicate } from "effect"
import { McpProtocol, McpSchema } from "effect/ai"

/** What a tool call ends with: a result, or a question that the client has to answer first. */
export type McpToolOutcome = McpSchema.CallToolResult | McpSchema.InputRequired

export interface McpDynamicTool {
  /** The tool as `tools/list` shows it. */
  readonly descriptor: McpSchema.Tool
  readonly run: (args: unknown) => Effect.Effect<McpToolOutcome, never, McpSchema.McpRequestContext>
}

/** Tools that are looked up anew for each request. */
export interface McpDynamicTools {
  readonly list: () => ReadonlyArray<McpSchema.Tool>
  readonly find: (name: string) => McpDynamicTool | undefined
}

interface Invocation {
  /** What the request carries, the answers to a question included. */
  readonly requestContext: McpSchema.McpRequestContext["Service"]
}

type Outcome =
  | { readonly _tag: "Complete"; readonly value: McpSchema.CallToolResult }
  | (Pick<McpSchema.InputRequired, "inputRequests" | "requestState"> & { readonly _tag: "InputRequired" })

/** What an adapter is given of the server's tools. */
interface ServerTools {
  readonly list: (invocation: Invocation) => Effect.Effect<ReadonlyArray<McpSchema.Tool>, unknown>
  readonly find: (name: string, profile: unknown) => McpSchema.Tool | undefined
  readonly call: (
    call: { readonly name: string; readonly arguments: unknown },
    invocation: Invocation
  ) => Effect.Effect<Outcome, unknown>
}

interface ServerCore {
  readonly tools: ServerTools
}

const isServerCore = (core: unknown): core is ServerCore =>
  Predicate.hasProperty(core, "tools") &&
  Predicate.hasProperty(core.tools, "list") &&
  Predicate.isFunction(core.tools.list) &&
  Predicate.hasProperty(core.tools, "find") &&
  Predicate.isFunction(core.tools.find) &&
  Predicate.hasProperty(core.tools, "call") &&
  Predicate.isFunction(core.tools.call)

const byName = (one: McpSchema.Tool, other: McpSchema.Tool) => (one.name < other.name ? -1 : 1)

const toOutcome = (outcome: McpToolOutcome): Outcome =>
  outcome instanceof McpSchema.InputRequired ? { ...outcome } : { _tag: "Complete", value: outcome }

const withTools = (core: ServerCore, tools: McpDynamicTools): ServerCore => ({
  ...core,
  tools: {
    ...core.tools,
    list: (invocation) => Effect.map(core.tools.list(invocation), (own) => [...own, ...tools.list()].sort(byName)),
    find: (name, profile) => tools.find(name)?.descriptor ?? core.tools.find(name, profile),
    call: (call, invocation) =>
      Effect.suspend(() => {
        const tool = tools.find(call.name)
        // An unknown name gets the server's own answer to one.
        if (tool === undefined) return core.tools.call(call, invocation)
        return tool
          .run(call.arguments)
          .pipe(Effect.map(toOutcome), Effect.provideService(McpSchema.McpRequestContext, invocation.requestContext))
      })
  }
})

const serving = (adapter: McpProtocol.ProtocolAdapter, tools: McpDynamicTools): McpProtocol.ProtocolAdapter => ({
  ...adapter,
  installHandlers: (core: unknown, lifecycle: unknown, target: unknown) =>
    isServerCore(core)
      ? adapter.installHandlers(withTools(core, tools), lifecycle, target)
      : // The adapter's interface does not say what it is given, so a new minor of Effect may give something else.
        Effect.die(new Error("this version of effect has an MCP server that effect-frontend-tools does not know"))
})

/** Every revision of Effect's server, the newest first, each serving `tools` beside the server's own. */
export const dynamicProtocols = (
  tools: McpDynamicTools
): readonly [McpProtocol.ProtocolAdapter, ...ReadonlyArray<McpProtocol.ProtocolAdapter>] => [
  serving(McpProtocol.v2026_07_28, tools),
  serving(McpProtocol.v2025_11_25, tools),
  serving(McpProtocol.v2025_06_18, tools),
  serving(McpProtocol.v2025_03_26, tools),
  serving(McpProtocol.v2024_11_05, tools)
]
