import { Context, Effect, Layer, Redacted, Schema, type Scope, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { KeyValueStore } from "effect/persistence"
import * as Aidream from "../../../src/aidream.ts"
import type { Backend } from "./Backend.ts"
import { until } from "./until.ts"

/** A store that outlives clients: what a disk or a browser's storage is. */
export const storeOf = (entries: Map<string, string>): KeyValueStore.KeyValueStore =>
  KeyValueStore.makeStringOnly({
    get: (key) => Effect.sync(() => entries.get(key)),
    set: (key, value) => Effect.sync(() => entries.set(key, value)),
    remove: (key) => Effect.sync(() => entries.delete(key)),
    clear: Effect.sync(() => entries.clear()),
    size: Effect.sync(() => entries.size),
    keys: Effect.sync(() => [...entries.keys()])
  })

export interface ClientOptions {
  readonly store?: KeyValueStore.KeyValueStore | undefined
  readonly tools?: ReadonlyArray<Aidream.LibraryTool> | undefined
  readonly config?: Partial<Aidream.AidreamConfig["Service"]> | undefined
  readonly capabilities?: Aidream.CapabilitiesOptions | undefined
  readonly policy?: Partial<Aidream.LocalPolicy["Service"]> | undefined
  readonly credentials?: Layer.Layer<Aidream.Credentials> | undefined
}

const clientLayer = (backend: Pick<Backend, "url">, options: ClientOptions) =>
  Aidream.layer({
    config: { baseUrl: backend.url, ...options.config },
    capabilities: options.capabilities,
    policy: options.policy
  }).pipe(
    Layer.provideMerge(options.credentials ?? Aidream.Credentials.layerBearer(Redacted.make("token-of-a-person"))),
    Layer.provideMerge(
      options.store === undefined
        ? Layer.fresh(KeyValueStore.layerMemory)
        : Layer.succeed(KeyValueStore.KeyValueStore, options.store)
    ),
    Layer.provideMerge(FetchHttpClient.layer)
  )

/** A client of the backend; it ends with the scope. */
export const startClient = Effect.fnUntraced(function* (backend: Pick<Backend, "url">, options: ClientOptions = {}) {
  const services = yield* Layer.build(Layer.fresh(clientLayer(backend, options)))
  const library = Context.get(services, Aidream.ToolLibrary)
  yield* library.register(...(options.tools ?? []))
  return {
    services,
    runs: Context.get(services, Aidream.AgentRuns),
    approvals: Context.get(services, Aidream.Approvals),
    journal: Context.get(services, Aidream.CallJournal),
    obligations: Context.get(services, Aidream.Obligations),
    records: Context.get(services, Aidream.RunRecords),
    active: Context.get(services, Aidream.ActiveTools),
    api: Context.get(services, Aidream.AidreamApi),
    conversations: Context.get(services, Aidream.Conversations),
    continuations: Context.get(services, Aidream.Continuations),
    library
  }
})

export type Client = Effect.Success<ReturnType<typeof startClient>>

/** What a consumer of a turn has seen so far. */
export interface Watched {
  readonly events: Array<Aidream.AgentEvent>
  readonly tags: () => ReadonlyArray<Aidream.AgentEvent["_tag"]>
  readonly of: <Tag extends Aidream.AgentEvent["_tag"]>(
    tag: Tag
  ) => ReadonlyArray<Extract<Aidream.AgentEvent, { readonly _tag: Tag }>>
  /** How the turn ended, when it has. */
  readonly outcome: () => Aidream.TurnOutcome | undefined
  /** Why the stream itself failed, when it has. */
  error: Aidream.AidreamError | undefined
  readonly ended: Effect.Effect<Aidream.TurnOutcome | undefined>
  readonly awaitTag: (tag: Aidream.AgentEvent["_tag"], count?: number) => Effect.Effect<void>
}

/** Consumes a turn in the background. */
export const watch = Effect.fnUntraced(function* (
  stream: Stream.Stream<Aidream.AgentEvent, Aidream.AidreamError>
): Effect.fn.Return<Watched, never, Scope.Scope> {
  const events: Array<Aidream.AgentEvent> = []
  const of: Watched["of"] = (tag) =>
    events.filter((event): event is Extract<Aidream.AgentEvent, { readonly _tag: typeof tag }> => event._tag === tag)
  const outcome = () => of("TurnEnded")[0]?.outcome
  const watched: Watched = {
    events,
    tags: () => events.map((event) => event._tag),
    of,
    outcome,
    error: undefined,
    ended: Effect.suspend(() =>
      until(
        () => `the turn ends; seen ${events.map((event) => event._tag).join(" ")}`,
        () => outcome() !== undefined || watched.error !== undefined
      )
    ).pipe(Effect.map(outcome)),
    awaitTag: (tag, count = 1) =>
      until(
        () => `${count} ${tag}; seen ${events.map((event) => event._tag).join(" ")}`,
        () => of(tag).length >= count
      )
  }
  yield* Stream.runForEach(stream, (event) => Effect.sync(() => events.push(event))).pipe(
    Effect.catch((error) =>
      Effect.sync(() => {
        watched.error = error
      })
    ),
    Effect.forkScoped({ startImmediately: true })
  )
  return watched
})

export const agent = Aidream.AgentId.make("agent-1")
export const conversation = Aidream.ConversationId.make("conv-1")

/** A tool that counts its runs. */
export const counting = (
  name: string,
  tier: Aidream.Tier = "read",
  run: (args: Aidream.JsonObject) => Effect.Effect<unknown, unknown> = () => Effect.succeed("done")
) => {
  const seen: Array<Aidream.JsonObject> = []
  const tool = Aidream.makeTool({
    name,
    tier,
    parameters: Schema.Record(Schema.String, Schema.Unknown),
    run: (args) =>
      Effect.suspend(() => {
        seen.push(args)
        return run(args)
      })
  })
  return { tool, runs: seen }
}
