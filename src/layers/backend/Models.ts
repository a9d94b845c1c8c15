import { Context, Effect, Layer } from "effect"
import { LanguageModel } from "effect/ai"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import type { Agent } from "./Agents.ts"
import type { Refusal } from "./Refusal.ts"

/** The model of one run. */
export interface ChosenModel {
  readonly model: LanguageModel.LanguageModel
  /** `false`: the model cannot call tools, so it is offered none. */
  readonly tools: boolean
}

/**
 * Chooses the model of a run, by its agent and the request's `config_overrides`.
 *
 * A run that no model fits fails with `agent_model_missing`.
 */
export class Models extends Context.Service<
  Models,
  {
    readonly choose: (request: {
      readonly agent: Agent
      readonly overrides: JsonObject
    }) => Effect.Effect<ChosenModel, Refusal>
  }
>()("effect-frontend-tools/layers/backend/Models") {
  /** The `LanguageModel` of the context for every run: any provider's layer. */
  static readonly layer = Layer.effect(
    Models,
    Effect.map(LanguageModel.LanguageModel, (model) => ({ choose: () => Effect.succeed({ model, tools: true }) }))
  )
}
