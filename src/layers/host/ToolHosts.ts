/**
 * Several hosts in one program: the same tools for an MCP client and for a model of
 * the program's own.
 */
import { Context, Effect, Exit, Layer, Scope } from "effect"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"
import { ToolHost, ToolRefused } from "./ToolHost.ts"

export interface HostMemberOptions {
  /**
   * What happens to a tool that this host refuses. `refuse` (the default) refuses it
   * on every host, and with it the batch that it came in; `skip` leaves it out of
   * this host's list, and logs a warning.
   */
  readonly onRefusal?: "refuse" | "skip" | undefined
}

interface Member {
  readonly name: string
  readonly host: ToolHost["Service"]
  readonly skips: boolean
}

/** The hosts that a group has: how `member` hands one to the `layer` it is given to. */
export class HostMembers extends Context.Service<
  HostMembers,
  {
    readonly add: (member: Member) => Effect.Effect<void, never, Scope.Scope>
  }
>()("effect-frontend-tools/layers/host/HostMembers") {}

/** One host of a group. It provides what the host's layer does beside its `ToolHost`, which is the group's. */
export const member = <A, E, R>(
  name: string,
  host: Layer.Layer<A | ToolHost, E, R>,
  { onRefusal }: HostMemberOptions = {}
): Layer.Layer<Exclude<A, ToolHost>, E, R | HostMembers> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const members = yield* HostMembers
      const context = yield* Layer.build(host)
      yield* members.add({ name, host: Context.get(context, ToolHost), skips: onRefusal === "skip" })
      return Context.omit(ToolHost)(context)
    })
  )

/**
 * One `ToolHost` that is all of its members, in the order of their names.
 *
 * - A tool is on all of them or on none: when one refuses it, it leaves those that had
 *   it before `register` returns, and the refusal begins with the host's name.
 * - A schema has to suit every member but those that skip; where all skip, one.
 * - Each member asks for a write in its own way, once per call.
 *
 * The same Layer value given as two members is built once, and is one host.
 *
 * **Example**
 *
 * ```ts
 * ToolHosts.layer(
 *   ToolHosts.member("mcp", McpHost.layer({ version: "1.0.0" })),
 *   ToolHosts.member("agent", ToolkitHost.layerApproval, { onRefusal: "skip" })
 * )
 * ```
 */
export const layer = <
  Members extends [Layer.Layer<never, unknown, unknown>, ...Array<Layer.Layer<never, unknown, unknown>>]
>(
  ...members: Members
): Layer.Layer<
  ToolHost | Layer.Success<Members[number]>,
  Layer.Error<Members[number]>,
  Exclude<Layer.Services<Members[number]>, HostMembers>
> => {
  const group = Layer.effectContext(
    Effect.sync(() => {
      const present: Array<Member> = []
      return Context.make(ToolHost, hostOf(present)).pipe(Context.add(HostMembers, membersOf(present)))
    })
  )
  return Layer.mergeAll(...members).pipe(Layer.provideMerge(group))
}

const membersOf = (present: Array<Member>): HostMembers["Service"] => ({
  add: (member) =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.suspend(() => {
          if (present.some(({ name }) => name === member.name)) {
            return Effect.die(new Error(`two hosts of a group are called "${member.name}"`))
          }
          present.push(member)
          // They are built side by side: which one refuses must not depend on the first to be ready.
          present.sort((one, other) => (one.name < other.name ? -1 : 1))
          return Effect.void
        }),
        () => Effect.sync(() => present.splice(present.indexOf(member), 1))
      )
    )
})

const hostOf = (present: ReadonlyArray<Member>): ToolHost["Service"] => {
  const objections = (
    members: ReadonlyArray<Member>,
    of: (profile: SchemaProfile) => ReadonlyArray<string>
  ): ReadonlyArray<string> =>
    members.flatMap(({ host, name }) => of(host.profile).map((text) => `host "${name}": ${text}`))

  const takes = ({ host }: Member, schema: Parameters<SchemaProfile["violations"]>[0]) =>
    host.profile.violations(schema).length === 0

  const profile: SchemaProfile = {
    violations: (schema) => {
      const strict = objections(
        present.filter(({ skips }) => !skips),
        ({ violations }) => violations(schema)
      )
      if (strict.length > 0 || present.some((member) => takes(member, schema))) return strict
      return objections(present, ({ violations }) => violations(schema))
    },
    mismatches: (schema, value, subject) =>
      objections(
        present.filter((member) => takes(member, schema)),
        ({ mismatches }) => mismatches(schema, value, subject)
      )
  }

  const registerOn = Effect.fnUntraced(function* (member: Member, tool: HostTool) {
    const { host, name, skips } = member
    const { outputSchema, parametersSchema, publicName } = tool
    const refused = (message: string) => new ToolRefused({ publicName, message: `host "${name}": ${message}` })
    const violations = [parametersSchema, ...(outputSchema === undefined ? [] : [outputSchema])].flatMap(
      host.profile.violations
    )
    const registering =
      violations.length > 0
        ? Effect.fail(refused(`tool "${publicName}": ${violations.join("; ")}`))
        : Effect.mapError(host.register(tool), ({ message }) => refused(message))
    if (!skips) return yield* Effect.as(registering, undefined)
    return yield* registering.pipe(
      Effect.as(undefined),
      Effect.catchTag("ToolRefused", (refusal) =>
        Effect.as(Effect.logWarning(`left a tool out: ${refusal.message}`), refusal)
      )
    )
  })

  const register = Effect.fnUntraced(function* (tool: HostTool) {
    const { publicName } = tool
    const scope = yield* Scope.fork(yield* Effect.scope)
    yield* Effect.forEach(present, (member) => registerOn(member, tool)).pipe(
      Effect.flatMap((skipped) => {
        const refusals = skipped.filter((refusal) => refusal !== undefined)
        if (refusals.length < present.length) return Effect.void
        const message = refusals.map((refusal) => refusal.message).join("; ")
        return Effect.fail(new ToolRefused({ publicName, message }))
      }),
      Scope.provide(scope),
      Effect.onError(() => Scope.close(scope, Exit.void))
    )
  }, Effect.uninterruptible)

  return { profile, register }
}
