import { Context, Effect, Layer, Option } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import type { AgentId } from "../../domain/aidream/Ids.ts"
import type { Refusal } from "./Refusal.ts"

/** Who a model plays in a conversation. */
export interface Agent {
  /** Its system prompt. `{{name}}` stands for a variable of the conversation. */
  readonly instructions: string
  /** Names of catalog tools every run of it gets. */
  readonly tools: ReadonlyArray<string>
  /** Names that no request can bring in. */
  readonly denied?: ReadonlyArray<string> | undefined
}

/** The agents of the embedding team. A definition that cannot be used fails with a 422 of its own. */
export class Agents extends Context.Service<
  Agents,
  {
    readonly find: (
      id: AgentId,
      options: { readonly isVersion: boolean }
    ) => Effect.Effect<Option.Option<Agent>, Refusal>
  }
>()("effect-frontend-tools/layers/backend/Agents") {
  /** A fixed set, by id. */
  static readonly layer = (agents: Readonly<Record<string, Agent>>) =>
    Layer.succeed(Agents, {
      find: (id) => Effect.succeed(Object.hasOwn(agents, id) ? Option.fromUndefinedOr(agents[id]) : Option.none())
    })

  /** One agent under every id. */
  static readonly layerAny = (agent: Agent) => Layer.succeed(Agents, { find: () => Effect.succeed(Option.some(agent)) })
}

/** The system prompt of a run: the instructions with their variables, then the request's context. */
export const systemPrompt = (agent: Agent, variables: JsonObject, context: JsonObject): string => {
  const instructions = agent.instructions.replace(/\{\{\s*([\w.-]+)\s*\}\}/g, (slot, name: string) =>
    Object.hasOwn(variables, name) ? textOf(variables[name]) : slot
  )
  const facts = Object.keys(context).length === 0 ? "" : `Context:\n${JSON.stringify(context, null, 2)}`
  return [instructions, facts].filter((part) => part !== "").join("\n\n")
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))
