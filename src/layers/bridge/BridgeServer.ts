import { Context, Effect, type Fiber, FiberSet, Layer, Order, Stream } from "effect"
import type { Namespace } from "../../domain/bridge/ToolName.ts"
import { Admission, type Slot } from "./Admission.ts"
import type { BridgeEvent } from "./BridgeEvent.ts"
import type { Connection } from "./Connection.ts"
import { SessionRunner } from "./Session.ts"
import { type DirectoryEntry, SessionDirectory } from "./SessionDirectory.ts"

/** A live session, for whoever lists them. */
export interface SessionInfo {
  readonly namespace: Namespace
  readonly toolCount: number
}

const infoOf = (entry: DirectoryEntry): SessionInfo => ({
  namespace: entry.namespace,
  toolCount: entry.toolCount()
})

/**
 * Who is connected: takes connections, wherever they come from, and runs each as a
 * session (bridge protocol, parts 0 and i).
 *
 * Closing the server's scope ends every session in order (close code 1001) and
 * returns when all they owned is released.
 */
export class BridgeServer extends Context.Service<
  BridgeServer,
  {
    /**
     * Runs the session of a connection, which has begun when this returns. A
     * connection that already has a place among the pending ones brings it along.
     * Interrupting the fiber ends the session in order.
     */
    readonly accept: (connection: Connection, slot?: Slot) => Effect.Effect<Fiber.Fiber<void>>
    /** The live sessions, sorted by namespace. */
    readonly sessions: Effect.Effect<ReadonlyArray<SessionInfo>>
    /** The live session of a namespace, looked up without walking the others. */
    readonly session: (namespace: string) => Effect.Effect<SessionInfo | undefined>
    /**
     * Ends the session of a namespace; its tools and calls are gone when this
     * returns. Says whether there was one.
     */
    readonly disconnect: (namespace: Namespace, reason: string) => Effect.Effect<boolean>
    /** What happens from now on. A reader that falls behind misses the oldest events. */
    readonly events: Stream.Stream<BridgeEvent>
  }
>()("effect-frontend-tools/layers/bridge/BridgeServer") {
  static readonly layer: Layer.Layer<BridgeServer, never, Admission | SessionDirectory | SessionRunner> = Layer.effect(
    BridgeServer,
    Effect.gen(function* () {
      const admission = yield* Admission
      const directory = yield* SessionDirectory
      const runner = yield* SessionRunner
      const run = yield* FiberSet.makeRuntime<never, void>()

      return BridgeServer.of({
        accept: (connection, slot) =>
          // Whoever cuts the connection before the session has begun terminates it.
          Effect.sync(() => run(runner.run(connection, slot ?? admission.enter(() => connection.terminate())))),

        sessions: Effect.sync(() =>
          Array.from(directory.entries(), infoOf).sort(
            Order.mapInput(Order.String, (session: SessionInfo) => session.namespace)
          )
        ),

        session: (namespace) =>
          Effect.sync(() => {
            const entry = directory.get(namespace)
            return entry === undefined ? undefined : infoOf(entry)
          }),

        disconnect: (namespace, reason) =>
          Effect.sync(() => {
            const entry = directory.get(namespace)
            entry?.end({ reason, terminate: false })
            return entry !== undefined
          }),

        events: Stream.fromPubSub(runner.events)
      })
    })
  )
}
