import { type Cause, Clock, DateTime, Duration, Effect, Exit, Fiber, Option, Queue, Scope, Stream } from "effect"
import { makeEventDecoder, type StreamItem } from "../../domain/aidream/EventDecoder.ts"
import { isTerminal } from "../../domain/aidream/RunEnd.ts"
import type { AidreamConfig } from "./AidreamConfig.ts"

/** What ended the reading of a body. */
export type BodyEnd =
  /** The backend closed it. */
  | "closed"
  /** The transport failed. */
  | "broken"
  /** Nothing arrived for longer than the stall limit. */
  | "stalled"
  /** All was said, and the body stayed open. */
  | "lingering"

/** The body of a run while it is read. */
export interface RunBody {
  /** What arrived, in order. Ends exactly once, however the body ended. */
  readonly items: Queue.Dequeue<StreamItem, Cause.Done>
  /** What ended it. Defined once `items` has ended. */
  readonly end: () => BodyEnd | undefined
}

/**
 * Reads a body into a queue (parts 3.5 and 3.6).
 *
 * The socket is drained as fast as it delivers, whatever the consumer does: a slow
 * consumer grows the queue and never stalls the backend. Reading stops with the
 * scope.
 */
export const openRunBody = Effect.fnUntraced(function* <E>(
  bytes: Stream.Stream<Uint8Array, E>,
  config: Pick<AidreamConfig["Service"], "stallTimeout" | "terminalGrace">
): Effect.fn.Return<RunBody, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const stall = Duration.toMillis(config.stallTimeout)
  const decoder = makeEventDecoder()
  const items = yield* Queue.unbounded<StreamItem, Cause.Done>()
  const now = () => clock.currentTimeMillisUnsafe()

  let end: BodyEnd | undefined
  let silentUntil = now() + stall
  let terminal = false

  const finish = (how: BodyEnd) => {
    if (end !== undefined) return
    end = how
    Queue.endUnsafe(items)
  }

  const grace = Effect.andThen(
    Effect.sleep(config.terminalGrace),
    Effect.suspend(() => {
      finish("lingering")
      return Fiber.interrupt(pump)
    })
  )

  const take = (batch: ReadonlyArray<StreamItem>) => {
    let armed = false
    for (const item of batch) {
      if (item._tag === "malformed" || item._tag === "unrecognised") continue
      if (item._tag === "provider_retry") {
        const retryAt = instantOf(item.data.retry_at)
        if (retryAt !== undefined) silentUntil = Math.max(silentUntil, retryAt + stall)
      } else if (!terminal && isTerminal(item)) {
        terminal = true
        armed = true
      }
    }
    Queue.offerAllUnsafe(items, batch)
    return armed ? Effect.asVoid(Effect.forkIn(grace, scope)) : Effect.void
  }

  const pump: Fiber.Fiber<void> = yield* bytes.pipe(
    Stream.runForEach((chunk) => {
      silentUntil = Math.max(silentUntil, now() + stall)
      return take(decoder.push(chunk))
    }),
    Effect.exit,
    Effect.flatMap((exit) =>
      Effect.andThen(
        take(decoder.end()),
        Effect.sync(() => finish(Exit.isSuccess(exit) ? "closed" : "broken"))
      )
    ),
    Effect.forkIn(scope)
  )

  const watchdog = Effect.gen(function* () {
    while (end === undefined) {
      const left = silentUntil - now()
      if (left <= 0) {
        finish("stalled")
        yield* Fiber.interrupt(pump)
      } else {
        yield* Effect.sleep(left)
      }
    }
  })
  yield* Effect.forkIn(watchdog, scope)
  // A consumer still waiting when the scope closes must see the end too.
  yield* Scope.addFinalizer(
    scope,
    Effect.sync(() => finish("broken"))
  )

  return { items, end: () => end }
})

/** Milliseconds since the epoch, of ISO-8601 or of seconds since the epoch. */
const instantOf = (value: string | number | null | undefined): number | undefined => {
  if (value === null || value === undefined) return undefined
  if (typeof value === "number") return value * 1000
  return Option.getOrUndefined(Option.map(DateTime.make(value), DateTime.toEpochMillis))
}
