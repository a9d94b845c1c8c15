import { Context, Effect, Layer, Option, Schema } from "effect"
import { isJsonObject, type JsonObject } from "../../domain/aidream/Absent.ts"
import type { AgentId } from "../../domain/aidream/Ids.ts"
import { toWireName } from "../../domain/aidream/ToolIdentity.ts"
import type { ResumeRequest } from "../../domain/aidream/TurnRequest.ts"
import { type Agent, Agents } from "./Agents.ts"
import type { Identity } from "./Authentication.ts"
import { BackendConfig } from "./BackendConfig.ts"
import { Capabilities, LOAD_CHROME_TOOLS, type ResolvedClient } from "./Capabilities.ts"
import { DiscoveryTools, discoveryEntry, discoveryHandlers } from "./Discovery.ts"
import type { ToolChoice } from "./ModelStep.ts"
import { type ChosenModel, Models } from "./Models.ts"
import { agentNotFound, invalid, type Problem, type Refusal } from "./Refusal.ts"
import * as RunTools from "./RunTools.ts"
import { fromToolkit, type ServerTool, ServerTools } from "./ServerTools.ts"
import { type CatalogTool, findTool, ToolCatalog } from "./ToolCatalog.ts"
import type { ToolRequest } from "./ToolMerge.ts"

/** A request that can be run. */
export interface PreparedRun {
  readonly agent: Agent
  readonly chosen: ChosenModel
  readonly client: ResolvedClient
  readonly tools: RunTools.RunTools
  readonly serverTools: ReadonlyArray<ServerTool>
  readonly toolChoice: ToolChoice | undefined
  readonly context: JsonObject
}

/** What start, continue and resume have in common: all of a resume but the turn it names. */
export type RunFields = Omit<ResumeRequest, "user_request_id">

/**
 * Checks everything about a request that can be checked before anything is written:
 * its agent, its envelope, its tools, its model. Every problem is listed.
 */
export class RunPreparation extends Context.Service<
  RunPreparation,
  {
    readonly prepare: (options: {
      readonly identity: Identity
      readonly agentId: AgentId
      readonly isVersion: boolean
      readonly fields: RunFields
      /** Catalog tools that were loaded in the turn. */
      readonly loadedTools: ReadonlyArray<string>
      /** Problems found before. */
      readonly problems?: ReadonlyArray<Problem> | undefined
    }) => Effect.Effect<PreparedRun, Refusal>
  }
>()("effect-frontend-tools/layers/backend/RunPreparation") {
  static readonly layer = Layer.effect(
    RunPreparation,
    Effect.gen(function* () {
      const agents = yield* Agents
      const capabilities = yield* Capabilities
      const models = yield* Models
      const config = yield* BackendConfig
      const { tools: supplied } = yield* ToolCatalog
      const { tools: provided } = yield* ServerTools

      const catalog = completeCatalog(supplied, provided)
      const discovery = yield* Effect.provide(fromToolkit(DiscoveryTools), discoveryHandlers(supplied))
      const serverTools = [...discovery, ...provided]
      const served = new Set(serverTools.map(({ name }) => toWireName(name)))

      return RunPreparation.of({
        prepare: Effect.fnUntraced(function* ({ agentId, fields, identity, isVersion, loadedTools, ...rest }) {
          const agent = yield* agents.find(agentId, { isVersion })
          if (Option.isNone(agent)) return yield* agentNotFound(agentId)
          const { client, problems } = capabilities.resolve(fields.client, identity)
          const tools = RunTools.make(
            {
              catalog,
              served,
              agent: agent.value,
              client,
              request: { ...toolRequestOf(fields) },
              hostExclusions: config.hostExclusions
            },
            loadedTools
          )
          const set = tools.current()
          // Without the capability that was refused, its tools are missing too: that is no problem of its own.
          const [first, ...others] = [...(rest.problems ?? []), ...problems, ...set.problems]
          if (first !== undefined) return yield* invalid([first, ...others])
          if (set.misconfigured.length > 0) {
            yield* Effect.logError(`nobody can run these tools: ${set.misconfigured.join(", ")}`)
          }
          const overrides = fields.config_overrides ?? {}
          const chosen = yield* models.choose({ agent: agent.value, overrides })
          return {
            agent: agent.value,
            chosen,
            client,
            tools,
            serverTools,
            toolChoice: toolChoiceOf(overrides),
            context: fields.context
          } satisfies PreparedRun
        })
      })
    })
  )
}

/** The catalog with the discovery tool and with the server's own tools that nobody described. */
const completeCatalog = (
  supplied: ReadonlyArray<CatalogTool>,
  provided: ReadonlyArray<ServerTool>
): ReadonlyArray<CatalogTool> => {
  const described = supplied.filter(({ name }) => toWireName(name) !== LOAD_CHROME_TOOLS)
  const rest = provided
    .filter(({ name }) => findTool(described, { name }) === undefined)
    .map(({ description, inputSchema, name }): CatalogTool => ({ name, description, inputSchema, executors: [] }))
  return [discoveryEntry, ...described, ...rest]
}

const toolRequestOf = (fields: RunFields): ToolRequest => ({
  tools: fields.tools,
  toolsReplace: fields.tools_replace ?? undefined,
  amendments: { add: fields.client?.amendments?.add ?? [], remove: fields.client?.amendments?.remove ?? [] },
  user: { add: fields.user?.add ?? [], remove: fields.user?.remove ?? [] },
  targetInstanceId: fields.target_instance_id ?? undefined
})

const isNamedChoice = Schema.is(Schema.Struct({ tool: Schema.String }))

/** `config_overrides.tool_choice`; what is no choice is ignored. */
const toolChoiceOf = ({ tool_choice: choice }: JsonObject): ToolChoice | undefined => {
  if (choice === "auto" || choice === "none" || choice === "required") return choice
  return isJsonObject(choice) && isNamedChoice(choice) ? { tool: choice.tool } : undefined
}
