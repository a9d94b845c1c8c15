/** The tools that a host has right now. */
import { Deferred, Effect, Exit, PubSub, type Scope, Stream } from "effect"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"
import { ToolRefused } from "./ToolHost.ts"

/** One registration: a tool registered anew under the same name is another entry. */
export interface HostEntry {
  readonly tool: HostTool
  /** Done when the registration has ended. */
  readonly gone: Deferred.Deferred<void>
}

export interface HostCatalog {
  /** Lists a tool until the scope closes. */
  readonly register: (tool: HostTool) => Effect.Effect<void, ToolRefused, Scope.Scope>
  readonly find: (publicName: string) => HostEntry | undefined
  /** Sorted by public name, in the order of UTF-16 units. The same array until the next change. */
  readonly tools: () => ReadonlyArray<HostTool>
  /** Signals that the list has changed. */
  readonly changes: Stream.Stream<void>
}

/** An empty catalog, which refuses what the profile does not take. */
export const makeHostCatalog = Effect.fnUntraced(function* (profile: SchemaProfile) {
  const entries = new Map<string, HostEntry>()
  const changes = yield* Effect.acquireRelease(PubSub.sliding<void>(1), PubSub.shutdown)
  let sorted: ReadonlyArray<HostTool> | undefined

  const changed = () => {
    sorted = undefined
    PubSub.publishUnsafe(changes, undefined)
  }

  const catalog: HostCatalog = {
    register: Effect.fnUntraced(function* (tool) {
      const { outputSchema, parametersSchema, publicName } = tool
      const violations = [parametersSchema, ...(outputSchema === undefined ? [] : [outputSchema])].flatMap(
        profile.violations
      )
      if (violations.length > 0) {
        return yield* new ToolRefused({ publicName, message: `tool "${publicName}": ${violations.join("; ")}` })
      }
      const entry: HostEntry = { tool, gone: Deferred.makeUnsafe() }
      yield* Effect.acquireRelease(
        Effect.suspend(() => {
          if (entries.has(publicName)) {
            return Effect.fail(new ToolRefused({ publicName, message: `tool "${publicName}" is already registered` }))
          }
          entries.set(publicName, entry)
          changed()
          return Effect.void
        }),
        () =>
          Effect.sync(() => {
            entries.delete(publicName)
            changed()
            Deferred.doneUnsafe(entry.gone, Exit.void)
          })
      )
    }),
    find: (publicName) => entries.get(publicName),
    tools: () => {
      sorted ??= Array.from(entries.values(), ({ tool }) => tool).sort((one, other) =>
        one.publicName < other.publicName ? -1 : 1
      )
      return sorted
    },
    changes: Stream.fromPubSub(changes)
  }
  return catalog
})
