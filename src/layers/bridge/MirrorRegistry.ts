import { Context, Effect, Exit, Layer, Order, Scope } from "effect"
import { RegistrationRefused } from "../../domain/bridge/BridgeError.ts"
import { type HostTool, makeWriteTool } from "../../domain/bridge/HostTool.ts"
import { type JsonObject, type RemoteTool, withObjectRoot } from "../../domain/bridge/RemoteTool.ts"
import { type Namespace, type PublicName, publicName, type RawName, toolLabel } from "../../domain/bridge/ToolName.ts"
import { ToolHost } from "../host/ToolHost.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import * as BridgeMetrics from "./BridgeMetrics.ts"
import type { SessionCalls } from "./CallDispatcher.ts"

/** The mirrored tools of one session. */
export interface SessionTools {
  /**
   * Mirrors a batch on the host, all of it or nothing, and returns the public names
   * in its order.
   */
  readonly register: (batch: ReadonlyArray<RemoteTool>) => Effect.Effect<ReadonlyArray<PublicName>, RegistrationRefused>
  /** Takes tools off the host. Returns the raw names that were there, each once, in the order asked. */
  readonly unregister: (rawNames: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<RawName>>
  /** Number of tools mirrored now. */
  readonly size: () => number
}

interface Mirrored {
  readonly tool: HostTool
  readonly rawName: RawName
  /** Closing it takes the tool off the host. */
  readonly scope: Scope.Closeable
}

const invalidTool = (message: string) => new RegistrationRefused({ code: "invalid_tool", message })

/**
 * What is mirrored (bridge protocol, part d).
 *
 * A tool is on the host exactly while its session's scope is open and it is not
 * unregistered. The number of tools is bounded over all sessions.
 */
export class MirrorRegistry extends Context.Service<
  MirrorRegistry,
  {
    /** Opens the tools of a session: they leave the host when the scope closes. */
    readonly open: (session: {
      readonly namespace: Namespace
      readonly calls: SessionCalls
    }) => Effect.Effect<SessionTools, never, Scope.Scope>
    /** The mirrored tool of this public name, looked up without walking the others. */
    readonly lookup: (publicName: string) => HostTool | undefined
    /** The mirrored tools now, in no particular order. */
    readonly list: () => Iterable<HostTool>
    /** Every mirrored tool, sorted by public name. */
    readonly tools: Effect.Effect<ReadonlyArray<HostTool>>
  }
>()("effect-frontend-tools/layers/bridge/MirrorRegistry") {
  static readonly layer: Layer.Layer<MirrorRegistry, never, BridgeConfig | ToolHost> = Layer.effect(
    MirrorRegistry,
    Effect.gen(function* () {
      const { maxTools } = yield* BridgeConfig
      const host = yield* ToolHost
      const context = yield* Effect.context()
      const mirrored = new Map<string, Mirrored>()

      /** A schema in the form that goes to the host, or why it does not go there. */
      const accepted = (tool: RemoteTool, schema: JsonObject) => {
        const violations = host.profile.violations(schema)
        return violations.length === 0
          ? Effect.succeed(schema)
          : Effect.fail(
              invalidTool(
                `tool "${tool.name}" declares a JSON Schema the tool registry does not support: unsupported JSON schema: ${violations.join("; ")}`
              )
            )
      }

      const hostTool = Effect.fnUntraced(function* (namespace: Namespace, tool: RemoteTool, calls: SessionCalls) {
        const names = { rawName: tool.name, publicName: publicName(namespace, tool.name) }
        const parameters = withObjectRoot(tool.parametersSchema)
        if (parameters === undefined) {
          return yield* invalidTool(`tool "${tool.name}" parametersSchema must have type "object" at its root`)
        }
        const fields = {
          ...names,
          label: toolLabel(namespace, tool.name),
          namespace,
          description: tool.description,
          parametersSchema: yield* accepted(tool, parameters),
          ...(tool.outputSchema === undefined ? {} : { outputSchema: yield* accepted(tool, tool.outputSchema) })
        }
        const call = (args: unknown) => calls.forward(names, args)
        const made: HostTool =
          tool.readOnly === true ? { ...fields, access: "read", call } : makeWriteTool(fields, call)
        return made
      })

      const list = () => Array.from(mirrored.values(), ({ tool }) => tool)

      const open = Effect.fnUntraced(function* (session: {
        readonly namespace: Namespace
        readonly calls: SessionCalls
      }) {
        const { namespace, calls } = session
        const own = new Map<string, Mirrored>()
        let closed = false
        const sessionScope = yield* Effect.scope

        const remove = (entry: Mirrored) =>
          Effect.suspend(() => {
            if (own.get(entry.rawName) === entry) own.delete(entry.rawName)
            if (mirrored.get(entry.tool.publicName) === entry) mirrored.delete(entry.tool.publicName)
            BridgeMetrics.tools.updateUnsafe(mirrored.size, context)
            return Scope.close(entry.scope, Exit.void)
          })

        /** Checks the whole batch before the host sees any of it. */
        const prepare = Effect.fnUntraced(function* (batch: ReadonlyArray<RemoteTool>) {
          if (mirrored.size + batch.length > maxTools) {
            return yield* new RegistrationRefused({
              code: "too_many_tools",
              message: `registering ${batch.length} more tools would exceed the bridge-wide limit of ${maxTools} (currently ${mirrored.size})`
            })
          }
          const taken = new Set<string>()
          const tools: Array<HostTool> = []
          for (const tool of batch) {
            const name = publicName(namespace, tool.name)
            if (own.has(tool.name) || taken.has(name)) {
              return yield* invalidTool(
                `tool "${tool.name}" resolves to public name "${name}" that is already registered by this connection`
              )
            }
            taken.add(name)
            tools.push(yield* hostTool(namespace, tool, calls))
          }
          return tools
        })

        const register = Effect.fnUntraced(function* (batch: ReadonlyArray<RemoteTool>) {
          const added: Array<Mirrored> = []
          for (const tool of yield* prepare(batch)) {
            const entry: Mirrored = { tool, rawName: tool.rawName, scope: yield* Scope.fork(sessionScope) }
            added.push(entry)
            yield* host.register(tool).pipe(
              Scope.provide(entry.scope),
              Effect.mapError((refused) => invalidTool(`registering mirrored tools failed: ${refused.message}`)),
              // A host that takes its time may outlast the session.
              Effect.andThen(
                Effect.suspend(() => (closed ? Effect.fail(invalidTool("the session has ended")) : Effect.void))
              ),
              Effect.onError(() => Effect.forEach(added.reverse(), remove, { discard: true }))
            )
            own.set(entry.rawName, entry)
            mirrored.set(tool.publicName, entry)
          }
          BridgeMetrics.tools.updateUnsafe(mirrored.size, context)
          return added.map(({ tool }) => tool.publicName)
        }, Effect.uninterruptible)

        const unregister = (rawNames: ReadonlyArray<string>) =>
          Effect.uninterruptible(
            Effect.suspend(() => {
              const entries = rawNames.flatMap((rawName) => own.get(rawName) ?? [])
              const removed = Array.from(new Set(entries))
              return Effect.as(
                Effect.forEach(removed, remove, { discard: true }),
                removed.map(({ rawName }) => rawName)
              )
            })
          )

        yield* Effect.addFinalizer(() =>
          Effect.suspend(() => {
            closed = true
            return Effect.forEach(Array.from(own.values()), remove, { discard: true })
          })
        )

        const sessionTools: SessionTools = { register, unregister, size: () => own.size }
        return sessionTools
      })

      return MirrorRegistry.of({
        open,
        lookup: (name) => mirrored.get(name)?.tool,
        list,
        tools: Effect.sync(() => list().sort(Order.mapInput(Order.String, (tool: HostTool) => tool.publicName)))
      })
    })
  )
}
