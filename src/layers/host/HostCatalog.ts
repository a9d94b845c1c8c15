/** The tools that a host has right now, in the form in which it shows them. */
import { Deferred, Effect, Exit, PubSub, Result, type Scope } from "effect"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"
import { ToolRefused } from "./ToolHost.ts"

/** One registration: a tool registered anew under the same name is another entry. */
export interface HostEntry<Shown = unknown> {
  readonly tool: HostTool
  /** The tool as the host shows it: made once, so that it stays the same byte for byte. */
  readonly shown: Shown
  /** Done when the registration has ended. */
  readonly gone: Deferred.Deferred<void>
}

export interface HostCatalog<Shown = unknown> {
  /** Lists a tool until the scope closes. Fails when the name is taken, or the schema or the tool cannot be shown. */
  readonly register: (tool: HostTool) => Effect.Effect<void, ToolRefused, Scope.Scope>
  /** The entry of this public name, looked up without walking the others. */
  readonly find: (publicName: string) => HostEntry<Shown> | undefined
  /** Sorted by public name, in the order of UTF-16 units. The same array until the next change. */
  readonly entries: () => ReadonlyArray<HostEntry<Shown>>
  /** Tells every subscriber that there is a change; one that is slow is told once about several. */
  readonly changes: PubSub.PubSub<void>
}

/**
 * An empty catalog: the table behind a `ToolHost`, whose `register` is the host's own.
 *
 * It refuses what `profile` does not take, a name that is taken or `reserved`, and
 * what `show` cannot show, each with the tool's name in the message.
 */
export const makeHostCatalog = Effect.fnUntraced(function* <Shown>(options: {
  readonly profile: SchemaProfile
  readonly show: (tool: HostTool) => Result.Result<Shown, string>
  /** Names that the host uses itself. */
  readonly reserved?: ReadonlySet<string> | undefined
}) {
  const { profile, reserved, show } = options
  const entries = new Map<string, HostEntry<Shown>>()
  const changes = yield* Effect.acquireRelease(PubSub.sliding<void>(1), PubSub.shutdown)
  let sorted: ReadonlyArray<HostEntry<Shown>> | undefined

  const changed = () => {
    sorted = undefined
    PubSub.publishUnsafe(changes, undefined)
  }

  const make = (tool: HostTool): Result.Result<HostEntry<Shown>, string> => {
    const { outputSchema, parametersSchema, publicName } = tool
    if (entries.has(publicName) || reserved?.has(publicName) === true) {
      return Result.fail(`tool "${publicName}" is already registered`)
    }
    const violations = [parametersSchema, ...(outputSchema === undefined ? [] : [outputSchema])].flatMap(
      profile.violations
    )
    if (violations.length > 0) return Result.fail(`tool "${publicName}": ${violations.join("; ")}`)
    return Result.mapBoth(show(tool), {
      onSuccess: (shown) => ({ tool, shown, gone: Deferred.makeUnsafe<void>() }),
      onFailure: (message) => `tool "${publicName}": ${message}`
    })
  }

  const catalog: HostCatalog<Shown> = {
    register: (tool) => {
      const { publicName } = tool
      return Effect.acquireRelease(
        Effect.suspend(() => {
          const made = make(tool)
          if (Result.isFailure(made)) {
            return Effect.fail(new ToolRefused({ publicName, message: made.failure }))
          }
          entries.set(publicName, made.success)
          changed()
          return Effect.succeed(made.success)
        }),
        ({ gone }) =>
          Effect.sync(() => {
            entries.delete(publicName)
            changed()
            Deferred.doneUnsafe(gone, Exit.void)
          })
      ).pipe(Effect.asVoid)
    },
    find: (publicName) => entries.get(publicName),
    entries: () => {
      sorted ??= Array.from(entries.values()).sort((one, other) =>
        one.tool.publicName < other.tool.publicName ? -1 : 1
      )
      return sorted
    },
    changes
  }
  return catalog
})
