/**
 * The real harness in a test: cordis, its Loader and the harness's packages from npm,
 * booted from a `cordis.yml` whose last row is our built main entry.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Context } from "@deepseek-ai/cordis"
import Include from "@deepseek-ai/cordis-plugin-include"
import Loader from "@deepseek-ai/cordis-plugin-loader"
import type {} from "@deepseek-ai/dsh-session"
import type {} from "@deepseek-ai/dsh-tools"
import { createFrontendToolsClient, type FrontendTool } from "dsh-frontend-tools-client"
import { Effect, type Scope } from "effect"
import { freePort } from "../../support/freePort.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const PLUGIN = join(root, "dist/index.js")

export const ROW = "frontend-tools-bridge"
export const KEY = "static-key-of-the-test"

export interface HarnessOptions {
  /** The plugin row's configuration. */
  readonly config?: object | undefined
  /** The approval service: its configuration, or none of it. */
  readonly approval?: object | false | undefined
  /** Runs on the context before any plugin is loaded. */
  readonly before?: ((ctx: Context) => void) | undefined
  /** Prepares the state folder. */
  readonly prepare?: ((stateDir: string) => void) | undefined
}

/** Package names of a cordis.yml resolve from the folder it is in, so that is below the project. */
const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => {
    mkdirSync(join(root, ".tmp"), { recursive: true })
    return mkdtempSync(join(root, ".tmp", "dsh-"))
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Boots a harness; fails with what a failed row was rejected with. */
export const bootHarness = Effect.fnUntraced(function* (
  options: HarnessOptions = {}
): Effect.fn.Return<{ readonly ctx: Context; readonly stateDir: string }, Error, Scope.Scope> {
  const folder = yield* temporaryFolder
  const stateDir = join(folder, "state")
  mkdirSync(stateDir)
  options.prepare?.(stateDir)
  const row = (entry: object) => `- ${JSON.stringify(entry)}\n`
  writeFileSync(
    join(folder, "cordis.yml"),
    [
      { name: "@deepseek-ai/dsh-system-prompt" },
      { name: "@deepseek-ai/dsh-session" },
      { name: "@deepseek-ai/dsh-tools" },
      ...(options.approval === false
        ? []
        : [{ name: "@deepseek-ai/dsh-user-approval", config: options.approval ?? {} }]),
      { id: ROW, name: PLUGIN, config: { stateDir, ...options.config } }
    ]
      .map(row)
      .join("")
  )
  const ctx = yield* Effect.acquireRelease(
    Effect.sync(() => new Context()),
    (context) => Effect.promise(async () => context.fiber.dispose())
  )
  ctx.baseUrl = `${pathToFileURL(folder).href}/`
  yield* Effect.tryPromise({
    try: async () => {
      await ctx.plugin(Loader)
      options.before?.(ctx)
      ctx.loader.builtins.include = Include
      // The loader takes an id for the entry, which its types leave out.
      const include = {
        id: "include",
        name: "cordis:include",
        config: { path: pathToFileURL(join(folder, "cordis.yml")).href }
      }
      await ctx.loader.create(include)
      await ctx.loader.await()
      // Newer loaders only log a failed row: ask each.
      for (const entry of ctx.loader.entries()) await entry.fiber?.await()
    },
    catch: (error) => (error instanceof Error ? error : new Error(String(error)))
  })
  return { ctx, stateDir }
})

const agents = (ctx: Context) => {
  const session = ctx.sessions.create()
  session.append("turn/start", { turn: 1 })
  return { session }
}

export type Agent = ReturnType<typeof agents>

/** What the approval service needs of an agent: its session, inside an open turn. */
export const agentInTurn = agents

/** Lets one answerer decide on every write. Returns what it was asked. */
export const answerWith = (ctx: Context, answer: string | (() => Promise<string>)) => {
  const asked: Array<{ readonly toolName?: string; readonly reason?: string }> = []
  // The event's types belong to a package that its types do not name.
  const remove: () => void = Reflect.apply(ctx.on, ctx, [
    "approval/request",
    async (request: (typeof asked)[number]) => {
      asked.push(request)
      return typeof answer === "string" ? answer : answer()
    }
  ])
  return { asked, remove }
}

/** What the harness makes of a call. */
export interface CallResult {
  readonly isError: boolean
  readonly value?: unknown
  readonly error?: { readonly message: string; readonly info?: { readonly code: string } }
  readonly content: ReadonlyArray<{ readonly text: string }>
}

let calls = 0

/** Runs one call through the harness's whole pipeline, as a model's. */
export const execute = (
  ctx: Context,
  name: string,
  args: unknown,
  { agent, signal = new AbortController().signal }: { readonly agent?: Agent; readonly signal?: AbortSignal } = {}
) =>
  Effect.promise(async () => {
    const input = {
      callId: `call-${++calls}`,
      name,
      arguments: args,
      signal,
      ...(agent === undefined ? {} : { agent })
    }
    const result: CallResult = await Reflect.apply(ctx.tools.execute, ctx.tools, [input])
    return result
  })

/** What the model reads. */
export const textOf = (result: { readonly content: ReadonlyArray<{ readonly text: string }> }) =>
  result.content.map(({ text }) => text).join("\n")

/** Public names that the model sees. */
export const listed = (ctx: Context) => ctx.tools.schemas().map(({ name }) => name)

/** A shop that is connected to the harness's bridge over a real socket. */
export const openShop = Effect.fnUntraced(function* (options: HarnessOptions = {}) {
  const port = yield* freePort
  const { ctx, stateDir } = yield* bootHarness({
    ...options,
    config: { port, staticClients: [{ namespace: "shop", key: KEY }], ...options.config }
  })
  const ran: Array<readonly [name: string, args: unknown]> = []
  const started: Array<() => void> = []
  const tool = (name: string, readOnly: boolean, answer: () => Promise<unknown>): FrontendTool => ({
    name,
    description: name,
    readOnly,
    parametersSchema: { type: "object", properties: { user: { type: "string" } } },
    execute: (args) => {
      ran.push([name, args])
      for (const begun of started.splice(0)) begun()
      return answer()
    }
  })
  const client = yield* connect(port, KEY)
  yield* Effect.promise(() =>
    client.registerTools([
      tool("cart", true, async () => ({ items: 2 })),
      tool("order", false, async () => ({ ok: 1 })),
      tool("hang", true, () => new Promise(() => {}))
    ])
  )
  return {
    ctx,
    stateDir,
    port,
    client,
    ran,
    agent: agentInTurn(ctx),
    /** Waits until the application has begun to work on the next call. */
    begun: Effect.callback<void>((resume) => {
      started.push(() => resume(Effect.void))
    })
  }
})

/** The peer's published client, connected. */
export const connect = (port: number, key: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = createFrontendToolsClient({ url: `ws://127.0.0.1:${port}`, key, reconnect: false })
      await client.connect()
      return client
    }),
    (client) => Effect.sync(() => client.disconnect())
  )
