import { Clock, Duration, Effect, Latch } from "effect"

/** A value and the time, in monotonic milliseconds, at which it expires. */
export class Deadline<A extends object> {
  readonly at: number
  readonly value: A | undefined
  before: Deadline<A> = this
  after: Deadline<A> = this

  constructor(at: number, value: A | undefined) {
    this.at = at
    this.value = value
  }
}

/**
 * Runs `onExpire` for every value that has not been removed at its deadline.
 *
 * One fiber serves all values. Values with the same duration share a lane, a
 * circular list whose sentinel never expires. Monotonic time never runs backwards,
 * so a lane's insertion order is its deadline order: `add` and `remove` relink a few
 * pointers, and only the head of a lane can be due. The fiber sleeps through `Clock`
 * until the earliest head is due, and waits on a latch while there is nothing to
 * watch.
 *
 * @internal
 */
export const make = Effect.fnUntraced(function* <A extends object>(onExpire: (value: A) => void) {
  const clock = yield* Clock.Clock
  const lanes = new Map<number, Deadline<A>>()
  const earlier = Latch.makeUnsafe(false)
  let wakesAt = Number.POSITIVE_INFINITY

  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

  const add = (value: A, millis: number): Deadline<A> => {
    let lane = lanes.get(millis)
    if (lane === undefined) {
      lane = new Deadline<A>(Number.POSITIVE_INFINITY, undefined)
      lanes.set(millis, lane)
    }
    const entry = new Deadline(now() + millis, value)
    entry.before = lane.before
    entry.after = lane
    lane.before.after = entry
    lane.before = entry
    if (entry.at < wakesAt) earlier.openUnsafe()
    return entry
  }

  // Removing an entry twice is harmless: it is linked to itself afterwards.
  const remove = (entry: Deadline<A>) => {
    entry.before.after = entry.after
    entry.after.before = entry.before
    entry.before = entry
    entry.after = entry
  }

  // Expires what is due and returns the next deadline.
  const sweep = () => {
    const time = now()
    let next = Number.POSITIVE_INFINITY
    for (const [millis, lane] of lanes) {
      while (lane.after.at <= time) {
        const { after } = lane
        remove(after)
        if (after.value !== undefined) onExpire(after.value)
      }
      if (lane.after === lane) lanes.delete(millis)
      else next = Math.min(next, lane.after.at)
    }
    return next
  }

  yield* Effect.gen(function* () {
    while (true) {
      earlier.closeUnsafe()
      wakesAt = sweep()
      yield* wakesAt === Number.POSITIVE_INFINITY
        ? earlier.await
        : Effect.raceFirst(clock.sleep(Duration.millis(wakesAt - now())), earlier.await)
    }
  }).pipe(Effect.forkScoped)

  return { add, remove, now } as const
})
