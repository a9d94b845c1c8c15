import { Context as Cordis } from "@deepseek-ai/cordis"
import Sessions from "@deepseek-ai/dsh-session"
import SystemPrompt from "@deepseek-ai/dsh-system-prompt"
import Tools from "@deepseek-ai/dsh-tools"
import Approval from "@deepseek-ai/dsh-user-approval"
import * as PeerBridge from "dsh-frontend-tools-bridge"
import { Effect } from "effect"
import { temporaryFolder } from "./temporaryFolder.ts"

/** The published bridge of the peer on a real host, until the scope closes. It admits `demo` with the key `demo-key`. */
export const peerBridge = Effect.fnUntraced(function* (
  options: { readonly port?: number; readonly maxTools?: number } = {}
) {
  const stateDir = yield* temporaryFolder
  const ctx = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const ctx = new Cordis()
      await ctx.plugin(SystemPrompt)
      await ctx.plugin(Sessions)
      await ctx.plugin(Tools)
      await ctx.plugin(Approval, {})
      return ctx
    }),
    (ctx) => Effect.promise(() => ctx.fiber.dispose())
  )
  const roster = PeerBridge.ClientRoster.load(stateDir, [{ namespace: "demo", key: "demo-key" }])
  const server = new PeerBridge.BridgeServer(
    ctx,
    { port: options.port ?? 0, callTimeoutMs: 30_000, maxTools: options.maxTools ?? 200 },
    roster
  )
  yield* Effect.acquireRelease(
    Effect.promise(() => server.start()),
    () => Effect.sync(() => server.dispose())
  )
  return {
    port: server.port ?? 0,
    /** Public names on the host. */
    listed: Effect.sync(() => ctx.tools.schemas().map(({ name }) => name)),
    /** Calls a tool as the host does; interruption is the caller's abort. */
    call: (name: string, args: unknown = {}) =>
      Effect.tryPromise({
        try: async (signal) => {
          const definition = ctx.tools.get(name)
          if (definition === undefined) throw new Error(`unknown tool "${name}"`)
          return definition.execute(args, { signal } as never)
        },
        catch: (error) => (error instanceof Error ? error : new Error(String(error)))
      })
  }
})
