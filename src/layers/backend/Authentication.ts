import { sha256 } from "@noble/hashes/sha2.js"
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { type Refusal, unauthenticated } from "./Refusal.ts"

/** Who sent a request. */
export interface Identity {
  /** What conversations belong to: stable for one caller, never a credential itself. */
  readonly owner: string
  readonly kind: "user" | "guest"
  /** `false`: not an administrator, whatever the request's envelope claims. */
  readonly mayAdminister?: boolean | undefined
}

/** What a request carried. */
export interface Credentials {
  readonly bearer: Option.Option<Redacted.Redacted>
  readonly fingerprint: Option.Option<Redacted.Redacted>
}

/**
 * Says who sends a request (part 2.0). The embedding team provides it.
 *
 * A bearer wins over a fingerprint, which is then only informational. A bearer that
 * is not valid is refused, never downgraded to a guest.
 */
export class Authentication extends Context.Service<
  Authentication,
  {
    readonly identify: (credentials: Credentials) => Effect.Effect<Identity, Refusal>
  }
>()("effect-frontend-tools/layers/backend/Authentication") {
  /**
   * Bearer tokens are checked by `verify`, which answers with the user or with none.
   * `guests: false` refuses requests that carry only a fingerprint.
   */
  static readonly layer = (options: {
    readonly verify: (
      token: Redacted.Redacted
    ) => Effect.Effect<Option.Option<{ readonly id: string; readonly mayAdminister?: boolean | undefined }>>
    readonly guests?: boolean | undefined
  }) =>
    Layer.succeed(Authentication, {
      identify: ({ bearer, fingerprint }) => {
        if (Option.isSome(bearer)) {
          return Effect.flatMap(options.verify(bearer.value), (user) =>
            Option.isNone(user)
              ? Effect.fail(unauthenticated())
              : Effect.succeed<Identity>({
                  owner: `user:${user.value.id}`,
                  kind: "user",
                  mayAdminister: user.value.mayAdminister
                })
          )
        }
        return Option.isSome(fingerprint) && options.guests !== false
          ? Effect.succeed<Identity>({ owner: `guest:${digest(fingerprint.value)}`, kind: "guest" })
          : Effect.fail(unauthenticated())
      }
    })

  /** Every token is a user of its own. For tests and for one person's own machine. */
  static readonly layerTrusting = Authentication.layer({
    verify: (token) => Effect.succeed(Option.some({ id: digest(token) }))
  })
}

// The database must not hold what would let its reader act as the caller.
const digest = (secret: Redacted.Redacted) => bytesToHex(sha256(utf8ToBytes(Redacted.value(secret)))).slice(0, 32)
