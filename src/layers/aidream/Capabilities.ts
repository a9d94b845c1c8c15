import { Context, Effect, Layer, type Scope } from "effect"
import type { JsonObject } from "../../domain/aidream/Absent.ts"
import { ClientContext } from "../../domain/aidream/Envelope.ts"
import type { ConversationId } from "../../domain/aidream/Ids.ts"
import { capContext } from "../../domain/aidream/ModelContext.ts"
import type { PermissionMode } from "../../domain/aidream/Tier.ts"
import { ActiveTools } from "./ActiveTools.ts"
import { AidreamConfig } from "./AidreamConfig.ts"
import { ToolLibrary } from "./ToolLibrary.ts"

/** The tab, or other place, a request is about; resolved once per send. */
export interface Pin {
  /** Absent means explicitly none: nobody asks again. */
  readonly tabId: number | undefined
  /** What the builders may want to know about it. */
  readonly facts: JsonObject
}

/** What every builder of one request is told. */
export interface Send {
  readonly conversationId: ConversationId
  readonly purpose: "start" | "continue" | "resume"
  readonly mode: PermissionMode
  readonly pin: Pin
  /** Categories loaded earlier in this conversation. */
  readonly loadedCategories: ReadonlyArray<string>
}

/** Contributes one capability. */
export interface CapabilityProvider {
  readonly name: string
  /**
   * The capability's state now. `undefined`: its executor is not live, so it is not
   * declared. `stateless`: declared, without state.
   */
  readonly state: (send: Send) => Effect.Effect<JsonObject | "stateless" | undefined>
}

/** Contributes facts for the model. They never decide what a tool may do. */
export type ContextProvider = (send: Send) => Effect.Effect<JsonObject>

/** The client's part of a request. */
export interface Envelope {
  readonly client: ClientContext
  readonly context: JsonObject
  readonly pin: Pin
}

export interface CapabilitiesOptions {
  readonly providers?: ReadonlyArray<CapabilityProvider> | undefined
  readonly context?: ReadonlyArray<ContextProvider> | undefined
  /** What a request is about. Default: nothing. */
  readonly pin?: Effect.Effect<Pin> | undefined
  /** What this client calls itself, for instance `matrx-local/desktop`. */
  readonly surface?: string | undefined
  readonly mcp?: ReadonlyArray<string> | undefined
  readonly applyPolicy?: "auto" | "ask" | "off" | undefined
}

/**
 * What this client is, told anew in every request that opens a run (part 4).
 *
 * Nothing is kept from one request to the next: providers are asked each time, and
 * one whose executor is gone is not declared. A provider that crashes is left out and
 * logged; it must not keep the person from sending a message.
 */
export class Capabilities extends Context.Service<
  Capabilities,
  {
    readonly register: (provider: CapabilityProvider) => Effect.Effect<void, never, Scope.Scope>
    readonly registerContext: (provider: ContextProvider) => Effect.Effect<void, never, Scope.Scope>
    /** What a request would be about now. */
    readonly pin: Effect.Effect<Pin>
    readonly build: (send: Omit<Send, "pin" | "loadedCategories">) => Effect.Effect<Envelope>
  }
>()("effect-frontend-tools/layers/aidream/Capabilities") {
  static readonly layer = (options?: CapabilitiesOptions) =>
    Layer.effect(
      Capabilities,
      Effect.gen(function* () {
        const config = yield* AidreamConfig
        const library = yield* ToolLibrary
        const active = yield* ActiveTools
        const providers = new Set(options?.providers)
        const contexts = new Set(options?.context)

        const resolvePin = options?.pin ?? Effect.succeed<Pin>({ tabId: undefined, facts: {} })

        const added = <A>(set: Set<A>, item: A) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              set.add(item)
            }),
            () =>
              Effect.sync(() => {
                set.delete(item)
              })
          )

        return Capabilities.of({
          register: (provider) => added(providers, provider),
          registerContext: (provider) => added(contexts, provider),
          pin: resolvePin,
          build: Effect.fnUntraced(function* (request) {
            const pin = yield* resolvePin
            const send: Send = {
              ...request,
              pin,
              loadedCategories: active.of(request.conversationId).categories
            }

            const capabilities: Array<string> = []
            const state: Record<string, JsonObject> = {}
            for (const provider of providers) {
              const given = yield* survive(provider.state(send), `capability ${provider.name}`)
              if (given === undefined) continue
              if (!capabilities.includes(provider.name)) capabilities.push(provider.name)
              if (given !== "stateless") state[provider.name] = given
            }

            const context: Record<string, unknown> = {}
            for (const provider of contexts)
              Object.assign(context, yield* survive(provider(send), "a context provider"))

            const announced = library.announced()
            return {
              pin,
              context: capContext(context, config.maxContextText),
              client: ClientContext.make({
                capabilities,
                state,
                mcp: options?.mcp ?? [],
                ...(options?.surface === undefined ? {} : { surface: options.surface }),
                ...(options?.applyPolicy === undefined ? {} : { apply_policy: options.applyPolicy }),
                ...(announced.length === 0 ? {} : { amendments: { add: announced, remove: [] } })
              })
            }
          })
        })
      })
    )
}

const survive = <A>(effect: Effect.Effect<A>, what: string): Effect.Effect<A | undefined> =>
  Effect.catchDefect(effect, (defect) => Effect.as(Effect.logError(`${what} failed`, defect), undefined))
