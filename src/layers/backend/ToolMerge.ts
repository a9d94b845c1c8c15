import type { JsonObject } from "../../domain/aidream/Absent.ts"
import { isWireName, toWireName } from "../../domain/aidream/ToolIdentity.ts"
import type { InlineToolSpec, ToolSpec } from "../../domain/aidream/ToolSpec.ts"
import type { Agent } from "./Agents.ts"
import { type ResolvedClient, targetInstance } from "./Capabilities.ts"
import { isLive, MATRX_LOCAL, sameExecutor } from "./Executor.ts"
import type { Problem } from "./Refusal.ts"
import { sameSchema } from "./SameSchema.ts"
import { type CatalogTool, findTool } from "./ToolCatalog.ts"

/** Who runs a tool in this run. */
export type ToolRoute =
  | { readonly _tag: "Server" }
  | {
      readonly _tag: "Client"
      /** `undefined` for a tool the request itself brought. */
      readonly executor: string | undefined
      /** The desktop its calls are for. */
      readonly targetInstanceId: string | undefined
    }

/** A tool the model sees. */
export interface ActiveTool {
  /** As the model calls it. */
  readonly wireName: string
  /** As the ledger keeps it. */
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly route: ToolRoute
}

/** What a request says about tools. */
export interface ToolRequest {
  readonly tools: ReadonlyArray<ToolSpec>
  readonly toolsReplace: ReadonlyArray<ToolSpec> | undefined
  readonly amendments: { readonly add: ReadonlyArray<ToolSpec>; readonly remove: ReadonlyArray<string> }
  readonly user: { readonly add: ReadonlyArray<string>; readonly remove: ReadonlyArray<string> }
  readonly targetInstanceId: string | undefined
}

/** Everything a merge looks at. */
export interface MergeInput {
  readonly catalog: ReadonlyArray<CatalogTool>
  /** Wire names with an implementation on the server. */
  readonly served: ReadonlySet<string>
  readonly agent: Agent
  readonly client: ResolvedClient
  readonly request: ToolRequest
  readonly hostExclusions: ReadonlyArray<string>
  /** Added during the turn, by a tool. */
  readonly added: ReadonlyArray<ToolSpec>
  /** Removed during the run, by a tool. */
  readonly removed: ReadonlyArray<string>
}

/** The outcome of a merge. */
export interface ToolSet {
  readonly tools: ReadonlyArray<ActiveTool>
  /** Neither a client nor the server can run these: a mistake in the catalog. */
  readonly misconfigured: ReadonlyArray<string>
  /** Everything that is wrong with what was asked for. A run needs this to be empty. */
  readonly problems: ReadonlyArray<Problem>
}

type Candidate =
  | { readonly _tag: "Registered"; readonly wireName: string; readonly tool: CatalogTool }
  | { readonly _tag: "Inline"; readonly wireName: string; readonly spec: InlineToolSpec }

const registered = (name: string): ToolSpec => ({ kind: "registered", name, delegate: false })

/**
 * Decides which tools a run offers and who runs each (part 10.1).
 *
 * Computed anew for every run and after every change: nothing of an earlier routing
 * is carried over. Lists every problem of the request, not only the first.
 */
export const mergeTools = (input: MergeInput): ToolSet => {
  const problems: Array<Problem> = []
  const candidates = gather(input, problems)
  const excluded = new Set(
    [
      ...(input.agent.denied ?? []),
      ...input.request.amendments.remove,
      ...input.request.user.remove,
      ...input.hostExclusions,
      ...input.removed
    ].map(toWireName)
  )
  const tools: Array<ActiveTool> = []
  const misconfigured: Array<string> = []
  for (const candidate of candidates.values()) {
    if (excluded.has(candidate.wireName)) continue
    const route =
      candidate._tag === "Registered" ? routeOf(candidate.tool, input) : routeInline(candidate, input, problems)
    if (route === "absent") continue
    if (route === "misconfigured") misconfigured.push(candidate.wireName)
    else tools.push(activeTool(candidate, route))
  }
  return { tools, misconfigured, problems }
}

/** The tools that are asked for, by wire name, in a stable order. */
const gather = (input: MergeInput, problems: Array<Problem>): ReadonlyMap<string, Candidate> => {
  const { agent, client, request } = input
  const candidates = new Map<string, Candidate>()
  const refuse = (message: string) => problems.push({ code: "tool_merge_error", message })

  const accept = (spec: ToolSpec) => {
    switch (spec.kind) {
      case "agent": {
        refuse(`an agent ("${spec.agent_id}") cannot be a tool here`)
        return
      }
      case "registered": {
        const tool = findTool(input.catalog, { name: spec.name, id: spec.tool_id ?? undefined })
        if (tool === undefined) {
          problems.push({ code: "tool_not_found", message: `there is no tool "${spec.name}"` })
          return
        }
        const wireName = toWireName(tool.name)
        const known = candidates.get(wireName)
        if (known === undefined) candidates.set(wireName, { _tag: "Registered", wireName, tool })
        else if (known._tag === "Inline") refuse(`"${spec.name}" is asked for both registered and inline`)
        else if (known.tool !== tool) refuse(`"${known.tool.name}" and "${tool.name}" have one name for the model`)
        return
      }
      case "inline": {
        const wireName = toWireName(spec.name)
        const known = candidates.get(wireName)
        if (!isWireName(wireName)) refuse(`"${spec.name}" is too long a name for the model`)
        else if (known === undefined) candidates.set(wireName, { _tag: "Inline", wireName, spec })
        else if (known._tag === "Registered") refuse(`"${spec.name}" is asked for both registered and inline`)
        else if (!sameInline(known.spec, spec)) refuse(`inline tool "${spec.name}" is defined twice, differently`)
        return
      }
    }
  }

  if (request.toolsReplace === undefined) {
    const alwaysOn = client.capabilities.flatMap((capability) => capability.alwaysOn ?? [])
    for (const name of [...alwaysOn, ...agent.tools]) accept(registered(name))
    for (const spec of [...request.amendments.add, ...request.tools]) accept(spec)
    for (const name of request.user.add) accept(registered(name))
  } else {
    for (const spec of request.toolsReplace) accept(spec)
  }
  for (const spec of input.added) accept(spec)
  return candidates
}

const sameInline = (left: InlineToolSpec, right: InlineToolSpec) =>
  left.name === right.name &&
  left.description === right.description &&
  sameSchema(left.input_schema, right.input_schema)

const routeOf = (
  tool: CatalogTool,
  { client, request, served }: MergeInput
): ToolRoute | "absent" | "misconfigured" => {
  if (tool.requiresExecutor !== undefined && !isLive(tool.requiresExecutor, client.executors)) return "absent"
  const executor = tool.executors.find((name) => isLive(name, client.executors))
  if (executor !== undefined) {
    return {
      _tag: "Client",
      executor,
      targetInstanceId: sameExecutor(executor, MATRX_LOCAL)
        ? targetInstance(client, request.targetInstanceId)
        : undefined
    }
  }
  if (served.has(toWireName(tool.name))) return { _tag: "Server" }
  return tool.executors.length > 0 ? "absent" : "misconfigured"
}

// A page may inline a copy of a tool that another executor owns; without that executor nobody would answer it.
const routeInline = (
  { spec }: Candidate & { readonly _tag: "Inline" },
  { catalog, client }: MergeInput,
  problems: Array<Problem>
): ToolRoute | "absent" => {
  const twin = findTool(catalog, { name: spec.name })
  if (twin !== undefined) {
    const gates = twin.requiresExecutor === undefined ? [] : [twin.requiresExecutor]
    const owned = twin.executors.length === 0 || twin.executors.some((name) => isLive(name, client.executors))
    if (!owned || !gates.every((name) => isLive(name, client.executors))) return "absent"
    if (twin.name !== spec.name) {
      problems.push({
        code: "tool_merge_error",
        message: `inline tool "${spec.name}" has the name of the registered tool "${twin.name}"`
      })
    }
  }
  return { _tag: "Client", executor: undefined, targetInstanceId: undefined }
}

const activeTool = (candidate: Candidate, route: ToolRoute): ActiveTool =>
  candidate._tag === "Registered"
    ? {
        wireName: candidate.wireName,
        name: candidate.tool.name,
        description: candidate.tool.description,
        inputSchema: candidate.tool.inputSchema,
        route
      }
    : {
        wireName: candidate.wireName,
        name: candidate.spec.name,
        description: candidate.spec.description,
        inputSchema: candidate.spec.input_schema,
        route
      }
