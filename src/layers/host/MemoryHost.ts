import { Context, Effect, Layer, Option, Order, PubSub, Stream } from "effect"
import type { CallError } from "../../domain/bridge/BridgeError.ts"
import { type HostTool, WriteGrant } from "../../domain/bridge/HostTool.ts"
import { jsonSchemaProfile, type SchemaProfile } from "./SchemaProfile.ts"
import { ToolHost, ToolRefused } from "./ToolHost.ts"

/**
 * A host without a model: the tools are in a table, to be listed and called from the
 * program itself. For tests, inspectors and the bridge that runs alone.
 */
export class MemoryHost extends Context.Service<
  MemoryHost,
  {
    /** Every tool on the host, sorted by public name. */
    readonly tools: Effect.Effect<ReadonlyArray<HostTool>>
    /** The tool of this name, looked up without walking the others. */
    readonly tool: (publicName: string) => Option.Option<HostTool>
    /**
     * Calls a tool by its public name. A write tool runs when `approve` says yes to
     * it; without `approve` it fails with `NotGranted`. An unknown name is a defect.
     */
    readonly call: (
      publicName: string,
      args: unknown,
      approve?: (tool: HostTool, args: unknown) => Effect.Effect<boolean>
    ) => Effect.Effect<unknown, CallError>
    /** Signals that the list has changed. */
    readonly changes: Stream.Stream<void>
  }
>()("effect-frontend-tools/layers/host/MemoryHost") {
  /** The host, and what it holds. `profile` is what schemas it accepts; any JSON Schema by default. */
  static readonly layer = (options?: {
    readonly profile?: SchemaProfile | undefined
  }): Layer.Layer<MemoryHost | ToolHost> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const tools = new Map<string, HostTool>()
        const changes = yield* Effect.acquireRelease(PubSub.sliding<void>(1), PubSub.shutdown)
        const changed = () => PubSub.publishUnsafe(changes, undefined)

        const host = ToolHost.of({
          profile: options?.profile ?? jsonSchemaProfile,
          register: (tool) =>
            Effect.asVoid(
              Effect.acquireRelease(
                Effect.suspend(() => {
                  const { publicName } = tool
                  if (tools.has(publicName)) {
                    const message = `tool "${publicName}" is already registered`
                    return Effect.fail(new ToolRefused({ publicName, message }))
                  }
                  tools.set(publicName, tool)
                  changed()
                  return Effect.void
                }),
                () =>
                  Effect.sync(() => {
                    tools.delete(tool.publicName)
                    changed()
                  })
              )
            )
        })

        const memory = MemoryHost.of({
          tools: Effect.sync(() =>
            Array.from(tools.values()).sort(Order.mapInput(Order.String, (tool: HostTool) => tool.publicName))
          ),
          tool: (publicName) => Option.fromUndefinedOr(tools.get(publicName)),
          call: (publicName, args, approve) => {
            const tool = tools.get(publicName)
            if (tool === undefined) return Effect.die(new Error(`unknown tool "${publicName}"`))
            if (tool.access === "read") return tool.call(args)
            return Effect.flatMap(approve === undefined ? Effect.succeed(false) : approve(tool, args), (yes) =>
              Effect.provideService(
                tool.call(args),
                WriteGrant,
                yes ? WriteGrant.allowOnce(tool, args) : WriteGrant.refused
              )
            )
          },
          changes: Stream.fromPubSub(changes)
        })

        return Context.make(ToolHost, host).pipe(Context.add(MemoryHost, memory))
      })
    )
}
