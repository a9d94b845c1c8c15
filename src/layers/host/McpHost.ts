/**
 * The tools of running applications as tools of an MCP client (Model Context
 * Protocol 2024-11-05 to 2026-07-28), over standard input and output.
 */
import { Context, Deferred, Duration, Effect, Fiber, Layer, PubSub, Stdio } from "effect"
import { McpServer } from "effect/ai"
import { type ApproveWrites, makeMcpApproval } from "./McpApproval.ts"
import { makeMcpCalls } from "./McpCalls.ts"
import { makeMcpCatalog } from "./McpCatalog.ts"
import { messagesOnly } from "./McpInput.ts"
import { dynamicProtocols } from "./McpProtocols.ts"
import { addStableTools, stableToolNames } from "./McpStableTools.ts"
import { jsonSchemaProfile } from "./SchemaProfile.ts"
import { ToolHost } from "./ToolHost.ts"

export interface McpHostOptions {
  /** What the server calls itself. */
  readonly name?: string | undefined
  readonly version: string
  /** Whether a write asks the person at the client first. Defaults to `ask`. */
  readonly approveWrites?: ApproveWrites | undefined
}

const DEFAULT_NAME = "effect-frontend-tools"

const INSTRUCTIONS =
  "The tools come from applications that run right now; the part of a name before the two underscores says which. " +
  "They come and go with their applications. If a tool is not on your list, look with frontend_tools_list_tools " +
  "and call it through frontend_tools_call_tool. A tool that writes asks the person for each call."

/** How long calls may still run when the client has closed its end. Clients kill a server that stays for two seconds. */
const CLOSING_GRACE = Duration.seconds(1)

/**
 * A `ToolHost` whose tools an MCP client lists and calls.
 *
 * - The list is sorted and stays the same byte for byte between changes; every
 *   change is told to the client.
 * - A call runs in its own fiber; cancelling it at the client interrupts it.
 * - A write asks the person at the client, once for each call. A client that cannot
 *   ask gets a refusal.
 *
 * Standard output carries MCP only: give the layer a logger that writes elsewhere.
 */
export class McpHost extends Context.Service<
  McpHost,
  {
    /** Completes when the client has closed its end and its calls are answered, or one second later. */
    readonly closed: Effect.Effect<void>
  }
>()("effect-frontend-tools/layers/host/McpHost") {
  static readonly layer = (options: McpHostOptions): Layer.Layer<McpHost | ToolHost, never, Stdio.Stdio> =>
    Layer.effectContext(make(options))
}

const make = Effect.fnUntraced(function* (options: McpHostOptions) {
  const approveWrites = options.approveWrites ?? "ask"
  if (approveWrites === "always") {
    yield* Effect.logWarning("writes run without asking anybody, because approve-writes is set to always")
  }

  const catalog = yield* makeMcpCatalog(stableToolNames)
  const calls = makeMcpCalls(makeMcpApproval(approveWrites))

  const stdio = yield* Stdio.Stdio
  const inputEnded = yield* Deferred.make<void>()
  const ready = yield* Deferred.make<McpServer.McpServer["Service"]>()

  const registrations = Layer.effectDiscard(
    Effect.gen(function* () {
      const server = yield* McpServer.McpServer
      yield* addStableTools(server, catalog, calls)
      yield* Deferred.succeed(ready, server)
    })
  )

  const protocols = dynamicProtocols({
    list: () => catalog.entries().map(({ shown }) => shown),
    find: (name) => {
      const entry = catalog.find(name)
      return entry && { descriptor: entry.shown, run: (args) => calls.run(entry, args) }
    }
  })

  // The server interrupts the fiber that built it when its output ends, so it gets one of its own.
  const serving = yield* McpServer.layerStdio({
    name: options.name ?? DEFAULT_NAME,
    version: options.version,
    instructions: INSTRUCTIONS,
    protocols,
    registrations
  }).pipe(
    Layer.provide(Layer.succeed(Stdio.Stdio, messagesOnly(stdio, Deferred.succeed(inputEnded, undefined)))),
    Layer.launch,
    Effect.orDie,
    Effect.forkScoped
  )
  const server = yield* Effect.raceFirst(Deferred.await(ready), Fiber.join(serving))

  const changes = yield* PubSub.subscribe(catalog.changes)
  yield* PubSub.take(changes).pipe(
    Effect.andThen(server.notifications["notifications/tools/list_changed"]({})),
    Effect.forever,
    Effect.forkScoped
  )

  const graceIsOver = Deferred.await(inputEnded).pipe(Effect.andThen(Effect.sleep(CLOSING_GRACE)))

  return Context.make(ToolHost, { profile: jsonSchemaProfile, register: catalog.register }).pipe(
    Context.add(McpHost, { closed: Effect.raceFirst(Effect.asVoid(Fiber.await(serving)), graceIsOver) })
  )
})
