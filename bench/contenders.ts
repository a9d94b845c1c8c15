/** Ours, the peer's bridge and a bare WebSocket echo, each with what the bench calls on it. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context as Cordis } from "@deepseek-ai/cordis"
import Sessions from "@deepseek-ai/dsh-session"
import SystemPrompt from "@deepseek-ai/dsh-system-prompt"
import Tools from "@deepseek-ai/dsh-tools"
import Approval from "@deepseek-ai/dsh-user-approval"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as PeerBridge from "dsh-frontend-tools-bridge"
import { Context, Effect, Exit, Layer, References, Scope } from "effect"
import type * as OurPlugin from "../src/index.ts"
import { Bridge, BridgeConfig, MemoryHost, MirrorRegistry, Roster, WebSocketListener } from "../src/index.ts"
import { freePort } from "../test/support/freePort.ts"

export interface Client {
  readonly namespace: string
  readonly key: string
}

export interface BridgeUnderTest {
  readonly url: string
  /** Calls a read tool by its public name, as a host does. */
  readonly call: (publicName: string, args: unknown) => Promise<unknown>
  /** Whose key this is. */
  readonly authenticate: (key: string) => unknown
  /** What a gate asks for every call of its host: the class of a tool by its public name. */
  readonly categoryOf: (publicName: string) => unknown
  readonly close: () => Promise<void>
}

export const stateFolder = () => mkdtempSync(join(tmpdir(), "frontend-tools-bench-"))

/** The services of the real harness that a bridge plugin meets. */
export const startHarness = async (): Promise<Cordis> => {
  const ctx = new Cordis()
  await ctx.plugin(SystemPrompt)
  await ctx.plugin(Sessions)
  await ctx.plugin(Tools)
  await ctx.plugin(Approval, {})
  return ctx
}

export const startOurs = async (clients: ReadonlyArray<Client>, maxTools = 100_000): Promise<BridgeUnderTest> => {
  const stateDir = stateFolder()
  const scope = Scope.makeUnsafe()
  const layer = Bridge.layer.pipe(
    Layer.provideMerge(MemoryHost.layer()),
    Layer.provide(BridgeConfig.layer({ port: 0, stateDir, maxTools, staticClients: clients })),
    Layer.provide(NodeServices.layer),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, "Error"))
  )
  const context = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  const host = Context.get(context, MemoryHost)
  const roster = Context.get(context, Roster)
  const registry = Context.get(context, MirrorRegistry)
  return {
    url: Context.get(context, WebSocketListener).url,
    call: (name, args) => Effect.runPromise(host.call(name, args)),
    authenticate: (key) => Effect.runSync(roster.authenticate(key)),
    categoryOf: (name) => registry.lookup(name),
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(stateDir, { recursive: true, force: true })
    }
  }
}

export const startPeer = async (clients: ReadonlyArray<Client>, maxTools = 100_000): Promise<BridgeUnderTest> => {
  const stateDir = stateFolder()
  const ctx = await startHarness()
  const roster = PeerBridge.ClientRoster.load(stateDir, [...clients])
  const server = new PeerBridge.BridgeServer(ctx, { port: 0, callTimeoutMs: 30_000, maxTools }, roster)
  await server.start()
  const signal = new AbortController().signal
  return {
    url: `ws://127.0.0.1:${server.port}`,
    call: async (name, args) => {
      const definition = ctx.tools.get(name)
      if (definition === undefined) throw new Error(`no tool ${name}`)
      return definition.execute(args, { signal } as never)
    },
    authenticate: (key) => roster.lookup(key),
    categoryOf: (name) => server.categoryOf(name),
    close: async () => {
      server.dispose()
      await ctx.fiber.dispose()
      rmSync(stateDir, { recursive: true, force: true })
    }
  }
}

/** A bridge plugin in a harness of its own, called as the harness calls it for a model. */
export const startInHarness = async (
  plugin: typeof OurPlugin | typeof PeerBridge,
  client: Client
): Promise<Pick<BridgeUnderTest, "url" | "call" | "close">> => {
  const stateDir = stateFolder()
  const ctx = await startHarness()
  const port = await Effect.runPromise(freePort)
  await Reflect.apply(ctx.plugin, ctx, [plugin, { port, stateDir, staticClients: [client] }])
  const { signal } = new AbortController()
  let calls = 0
  return {
    url: `ws://127.0.0.1:${port}`,
    call: async (name, args) => {
      const result = await Reflect.apply(ctx.tools.execute, ctx.tools, [
        { callId: `call-${++calls}`, name, arguments: args, signal }
      ])
      if (result.isError) throw new Error(result.error.message)
      return result.value
    },
    close: async () => {
      await ctx.fiber.dispose()
      rmSync(stateDir, { recursive: true, force: true })
    }
  }
}
