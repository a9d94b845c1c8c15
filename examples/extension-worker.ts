/** The service worker of a browser extension. It is stopped after half a minute of rest, at any moment. */
import { Effect, Layer, ManagedRuntime, Redacted, Schema, Stream, SubscriptionRef } from "effect"
import { FetchHttpClient } from "effect/http"
import { KeyValueStore } from "effect/persistence"
import * as Aidream from "effect-frontend-tools/aidream"

/** The part of `chrome` that is used here; `@types/chrome` has all of it. */
interface Tab {
  readonly id?: number | undefined
  readonly title?: string | undefined
  readonly url?: string | undefined
}
interface Signal<Listener> {
  readonly addListener: (listener: Listener) => void
}
declare const chrome: {
  readonly alarms: {
    readonly create: (name: string, info: { readonly periodInMinutes: number }) => Promise<void>
    readonly onAlarm: Signal<(alarm: { readonly name: string }) => void>
  }
  readonly runtime: {
    readonly onMessage: Signal<(message: unknown) => void>
    readonly sendMessage: (message: unknown) => Promise<unknown>
  }
  readonly storage: {
    readonly local: {
      readonly get: (key: string | null) => Promise<Readonly<Record<string, unknown>>>
      readonly set: (items: Readonly<Record<string, unknown>>) => Promise<void>
      readonly remove: (keys: string | ReadonlyArray<string>) => Promise<void>
    }
  }
  readonly tabs: {
    readonly create: (options: { readonly url: string }) => Promise<Tab>
    readonly get: (id: number) => Promise<Tab>
    readonly query: (query: { readonly active: true; readonly lastFocusedWindow: true }) => Promise<ReadonlyArray<Tab>>
  }
}

// The journal lives where the worker's death does not reach it.
const JOURNAL = "journal/"

const journal = Effect.sync(() => {
  const { local } = chrome.storage
  const attempt = <A>(method: string, run: () => Promise<A>) =>
    Effect.tryPromise({
      try: run,
      catch: (cause) => new KeyValueStore.KeyValueStoreError({ method, message: "chrome.storage failed", cause })
    })
  const keys = attempt("keys", async () =>
    Object.keys(await local.get(null)).flatMap((key) => (key.startsWith(JOURNAL) ? [key.slice(JOURNAL.length)] : []))
  )
  return KeyValueStore.makeStringOnly({
    get: (key) =>
      attempt("get", async () => {
        const value = (await local.get(JOURNAL + key))[JOURNAL + key]
        return typeof value === "string" ? value : undefined
      }),
    set: (key, value) => attempt("set", () => local.set({ [JOURNAL + key]: value })),
    remove: (key) => attempt("remove", () => local.remove(JOURNAL + key)),
    clear: Effect.flatMap(keys, (all) => attempt("clear", () => local.remove(all.map((key) => JOURNAL + key)))),
    size: Effect.map(keys, (all) => all.length),
    keys
  })
})

const pageTitle = Aidream.makeTool({
  name: "page_title",
  description: "The title of the page the user is looking at.",
  tier: "read",
  announce: true,
  parameters: Schema.Struct({}),
  // The tab that was active when the message was sent, however often the user has switched since.
  run: (_, { pinnedTab }) =>
    pinnedTab === undefined
      ? Effect.fail(new Aidream.ToolFailure({ message: "there is no page" }))
      : Effect.promise(async () => ({ title: (await chrome.tabs.get(pinnedTab)).title ?? "" }))
})
const openPage = Aidream.makeTool({
  name: "open_page",
  description: "Opens a page in a new tab.",
  tier: "action",
  announce: true,
  parameters: Schema.Struct({ url: Schema.String }),
  run: ({ url }) => Effect.promise(async () => ({ tab: (await chrome.tabs.create({ url })).id ?? null }))
})

const activeTab = Effect.promise(async () => {
  const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true })
  return { tabId: tab?.id, facts: { url: tab?.url ?? null, title: tab?.title ?? null } }
})

/** What this extension is at the moment of a request. */
const browser: Aidream.CapabilityProvider = {
  name: "browser-dom",
  state: ({ loadedCategories, mode, pin }) =>
    Effect.succeed({
      current_url: pin.facts.url,
      current_tab_id: pin.tabId ?? null,
      page_title: pin.facts.title,
      surface: "assistant",
      is_admin: false,
      permission_mode: mode,
      desktop_bridge: "none",
      onbox_ai_available: false,
      optional_permissions_granted: [],
      loaded_categories: loadedCategories
    })
}

const Settings = Schema.Struct({ backendUrl: Schema.String, token: Schema.String })

const layer = Layer.unwrap(
  Effect.gen(function* () {
    const stored = yield* Effect.promise(() => chrome.storage.local.get("settings"))
    const { backendUrl, token } = yield* Schema.decodeUnknownEffect(Settings)(stored.settings)
    return Layer.effectDiscard(
      Effect.flatMap(Aidream.ToolLibrary, (library) => library.register(pageTitle, openPage))
    ).pipe(
      Layer.provideMerge(
        Aidream.layer({ config: { baseUrl: backendUrl }, capabilities: { providers: [browser], pin: activeTab } })
      ),
      Layer.provide(Aidream.Credentials.layerBearer(Redacted.make(token))),
      Layer.provide(Layer.effect(KeyValueStore.KeyValueStore, journal)),
      Layer.provide(FetchHttpClient.layer)
    )
  })
)

const runtime = ManagedRuntime.make(layer)

/** Tells the side panel, if one is open. */
const tell = (conversationId: string, event: Aidream.AgentEvent) =>
  Effect.ignore(Effect.tryPromise(() => chrome.runtime.sendMessage({ conversationId, event })))

/** Shows the panel what waits for a yes or no: also what an earlier worker asked. */
const askPanel = Effect.gen(function* () {
  const { open } = yield* Aidream.Approvals
  yield* Stream.runForEach(SubscriptionRef.changes(open), (questions) =>
    Effect.ignore(Effect.tryPromise(() => chrome.runtime.sendMessage({ questions })))
  )
})

/** Goes on with what an earlier worker left. Safe at any time, and as often as you like. */
const wake = Aidream.AgentRuns.use(({ recover }) => recover)

/** What the side panel may say. */
const Message = Schema.Union([
  Schema.TaggedStruct("Ask", { agentId: Aidream.AgentId, conversationId: Aidream.ConversationId, text: Schema.String }),
  // On showing a conversation: its pending calls run or are asked about again.
  Schema.TaggedStruct("Open", { conversationId: Aidream.ConversationId }),
  Schema.TaggedStruct("Decide", {
    conversationId: Aidream.ConversationId,
    callId: Aidream.CallId,
    allow: Schema.Boolean
  })
])

const take = Effect.fnUntraced(function* (message: typeof Message.Type) {
  const runs = yield* Aidream.AgentRuns
  const { conversationId } = message
  const show = (events: Stream.Stream<Aidream.AgentEvent, Aidream.AidreamError>) =>
    Stream.runForEach(events, (event) => tell(conversationId, event))
  switch (message._tag) {
    case "Ask":
      return yield* show(runs.run({ agentId: message.agentId, conversationId, isNew: true, message: message.text }))
    case "Open":
      return yield* show(runs.open(conversationId))
    case "Decide":
      return yield* Effect.asVoid(Aidream.Approvals.use(({ decide }) => decide(message)))
  }
})

// Listeners are set before the first pause: an event that started the worker is delivered to them only then.
chrome.alarms.onAlarm.addListener(() => void runtime.runPromise(wake))
chrome.runtime.onMessage.addListener((message) => {
  const taken = Effect.flatMap(Schema.decodeUnknownEffect(Message)(message), take)
  void runtime.runPromise(Effect.ignore(taken, { log: true }))
})

// Every start is a wake-up; the alarm starts the worker when nothing else does.
void chrome.alarms.create("replay", { periodInMinutes: 1 })
void runtime.runPromise(askPanel)
void runtime.runPromise(wake)
