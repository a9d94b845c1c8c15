import { Context, Effect, type Latch, Layer, Schema, type Scope } from "effect"
import type { Namespace } from "../../domain/bridge/ToolName.ts"
import * as BridgeMetrics from "./BridgeMetrics.ts"

/** How long an incumbent may take to show that it lives, once somebody else has its key. */
const PROBE_DEADLINE = "1 second"

/** The namespace has a live session already. */
export class DuplicateConnection extends Schema.TaggedError<DuplicateConnection>()("DuplicateConnection", {
  namespace: Schema.String
}) {
  override get message() {
    return `another connection already holds the "${this.namespace}" frontend-tools session; close it first`
  }
}

/** A session as everybody else sees it. */
export interface DirectoryEntry {
  readonly namespace: Namespace
  /** Number of tools mirrored now. */
  readonly toolCount: () => number
  /** Asks the application for a sign of life; each one opens `heard`. */
  readonly ping: () => void
  readonly heard: Latch.Latch
  /** Ends the session; everything it owns is released before this returns. */
  readonly end: (why: { readonly reason: string; readonly terminate: boolean }) => void
}

/**
 * Who is connected: at most one session per namespace (bridge protocol, parts a.3
 * and f).
 *
 * Who has a namespace keeps it while it lives. A newcomer with the right key makes
 * the directory ask the incumbent at once; one that does not answer within a second
 * is dropped, so that a half-open socket does not lock its own application out.
 */
export class SessionDirectory extends Context.Service<
  SessionDirectory,
  {
    /** Takes the namespace of a session until the scope closes. */
    readonly claim: (entry: DirectoryEntry) => Effect.Effect<void, DuplicateConnection, Scope.Scope>
    readonly get: (namespace: string) => DirectoryEntry | undefined
    readonly entries: () => Iterable<DirectoryEntry>
  }
>()("effect-frontend-tools/layers/bridge/SessionDirectory") {
  static readonly layer: Layer.Layer<SessionDirectory> = Layer.effect(
    SessionDirectory,
    Effect.gen(function* () {
      const context = yield* Effect.context()
      const live = new Map<string, DirectoryEntry>()
      const counted = () => BridgeMetrics.sessions.updateUnsafe(live.size, context)

      const answers = (incumbent: DirectoryEntry) =>
        Effect.suspend(() => {
          incumbent.heard.closeUnsafe()
          incumbent.ping()
          return Effect.as(incumbent.heard.await, true).pipe(
            Effect.timeoutOrElse({ duration: PROBE_DEADLINE, orElse: () => Effect.succeed(false) })
          )
        })

      const claim = Effect.fnUntraced(function* (entry: DirectoryEntry) {
        const { namespace } = entry
        for (let incumbent = live.get(namespace); incumbent !== undefined; incumbent = live.get(namespace)) {
          const alive = yield* answers(incumbent)
          // It may have gone by itself meanwhile, and another newcomer come in its place.
          if (live.get(namespace) !== incumbent) continue
          if (alive) return yield* new DuplicateConnection({ namespace })
          incumbent.end({ reason: "silent while its key came back on another connection", terminate: true })
        }
        // No interruption point between the look-up above and this.
        live.set(namespace, entry)
        counted()
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            if (live.get(namespace) === entry) live.delete(namespace)
            // Whoever asks this session for a sign of life has waited long enough.
            entry.heard.openUnsafe()
            counted()
          })
        )
      })

      return SessionDirectory.of({
        claim,
        get: (namespace) => live.get(namespace),
        entries: () => live.values()
      })
    })
  )
}
