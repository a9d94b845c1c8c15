import { type Cause, Effect, Queue, Stream } from "effect"
import { type EventName, encodeEvent, type KnownEventOf } from "../../domain/aidream/StreamEvent.ts"

/** An event of a run, before it has a place in a stream. */
export type RunEvent = { readonly [Name in EventName]: Omit<KnownEventOf<Name>, "seq"> }[EventName]

/** Where a run writes its events, whether anybody reads them or not. */
export interface RunStream {
  /** Never waits: a reader that is too far behind, or gone, is cut off and the run goes on. */
  readonly emit: (event: RunEvent) => void
  /** Closes the body. */
  readonly end: () => void
  /** The body, for one reader. */
  readonly body: Stream.Stream<Uint8Array>
}

/** `capacity`: how many events a reader may be behind. */
export const make = Effect.fnUntraced(function* (capacity: number) {
  const queue = yield* Queue.make<string, Cause.Done>({ capacity, strategy: "dropping" })
  let isCut = false
  const cut = () => {
    isCut = true
    Queue.endUnsafe(queue)
  }

  return {
    emit: (event) => {
      if (isCut) return
      const line = encodeEvent({ ...event, seq: undefined }, { compact: true })
      if (!Queue.offerUnsafe(queue, line)) cut()
    },
    end: cut,
    body: Stream.fromQueue(queue).pipe(
      // What waits leaves in one write.
      Stream.mapArray((lines) => [lines.join("")]),
      Stream.encodeText,
      Stream.ensuring(
        Effect.suspend(() => {
          isCut = true
          return Effect.asVoid(Queue.shutdown(queue))
        })
      )
    )
  } satisfies RunStream
})
