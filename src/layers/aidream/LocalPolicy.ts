import { Context, Effect, Layer } from "effect"

/**
 * What this client knows about its own person and machine: the trusted side of
 * every gate. Nothing a request claims is believed here (part 6.4).
 */
export class LocalPolicy extends Context.Service<
  LocalPolicy,
  {
    readonly isAdmin: Effect.Effect<boolean>
    /** For instance `darwin`. While it is undefined, tools bound to platforms are refused. */
    readonly platform: string | undefined
    /** Optional permissions granted now. */
    readonly permissions: Effect.Effect<ReadonlySet<string>>
    /** The tabs calls may target; undefined when there is no group. */
    readonly group: Effect.Effect<ReadonlySet<number> | undefined>
  }
>()("effect-frontend-tools/layers/aidream/LocalPolicy") {
  /** Not an admin, nothing granted, no group. */
  static readonly defaults: LocalPolicy["Service"] = {
    isAdmin: Effect.succeed(false),
    platform: undefined,
    permissions: Effect.succeed(new Set()),
    group: Effect.undefined
  }

  static readonly layer = (policy?: Partial<LocalPolicy["Service"]>) =>
    Layer.succeed(LocalPolicy, { ...LocalPolicy.defaults, ...policy })
}
