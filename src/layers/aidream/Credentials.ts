import { Context, Duration, Effect, Layer, type Redacted } from "effect"
import { CredentialUnavailable } from "../../domain/aidream/AidreamError.ts"

/** What a request is signed with. A fingerprint beside a bearer is informational. */
export type Credential =
  | {
      readonly _tag: "Bearer"
      readonly token: Redacted.Redacted<string>
      readonly fingerprint?: Redacted.Redacted<string> | undefined
    }
  | { readonly _tag: "Guest"; readonly fingerprint: Redacted.Redacted<string> }

/**
 * Who sends a request (part 2.0).
 *
 * A caller that is signed in never sends as a guest: when its token can't be read,
 * the request fails with `CredentialUnavailable` before it leaves.
 */
export class Credentials extends Context.Service<
  Credentials,
  {
    /** The credential of the next request. */
    readonly current: Effect.Effect<Credential, CredentialUnavailable>
    /** Asks for a new token after a 401. */
    readonly refresh: Effect.Effect<Credential, CredentialUnavailable>
  }
>()("effect-frontend-tools/layers/aidream/Credentials") {
  /** A token that does not change. */
  static readonly layerBearer = (token: Redacted.Redacted<string>) => {
    const current = Effect.succeed<Credential>({ _tag: "Bearer", token })
    return Layer.succeed(Credentials, { current, refresh: current })
  }

  /** A guest, known by its fingerprint. */
  static readonly layerGuest = (fingerprint: Redacted.Redacted<string>) => {
    const current = Effect.succeed<Credential>({ _tag: "Guest", fingerprint })
    return Layer.succeed(Credentials, { current, refresh: current })
  }

  /**
   * A session that is signed in or not. While it is signed in and its token is not
   * readable yet (a sign-in page still writes it), the token is read again until
   * `patience` (default 2 seconds) is over; then the request is refused.
   */
  static readonly layerSession = (session: {
    readonly signedIn: Effect.Effect<boolean>
    readonly readToken: Effect.Effect<Redacted.Redacted<string> | undefined>
    readonly refreshToken?: Effect.Effect<Redacted.Redacted<string> | undefined> | undefined
    readonly fingerprint: Redacted.Redacted<string>
    readonly patience?: Duration.Input | undefined
  }) => {
    const patience = Duration.toMillis(session.patience ?? Duration.seconds(2))
    const { fingerprint } = session

    const bearer = Effect.fnUntraced(function* (
      read: Effect.Effect<Redacted.Redacted<string> | undefined>
    ): Effect.fn.Return<Credential, CredentialUnavailable> {
      for (let waited = 0; ; waited += POLL_MILLIS) {
        const token = yield* read
        if (token !== undefined) return { _tag: "Bearer", token, fingerprint }
        if (waited >= patience) {
          return yield* new CredentialUnavailable({ problem: "signed in, but the token can't be read" })
        }
        yield* Effect.sleep(POLL_MILLIS)
      }
    })

    const signed = (read: Effect.Effect<Redacted.Redacted<string> | undefined>) =>
      Effect.flatMap(session.signedIn, (signedIn) =>
        signedIn ? bearer(read) : Effect.succeed<Credential>({ _tag: "Guest", fingerprint })
      )

    return Layer.succeed(Credentials, {
      current: signed(session.readToken),
      refresh: signed(session.refreshToken ?? session.readToken)
    })
  }
}

const POLL_MILLIS = 100
