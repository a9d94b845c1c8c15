import { Context, Effect, Layer } from "effect"
import * as Deadlines from "../internal/deadlines.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import * as BridgeMetrics from "./BridgeMetrics.ts"

/** Why a connection without a welcome has to go. */
export type Eviction = "handshake timeout" | "too many pending handshakes"

/** The place of one connection that has not proven who it is. */
export interface Slot {
  /** Who cuts the connection when it has to go; a socket hands this to its session. */
  evict: (why: Eviction) => void
  /** The hello is there: the deadline is off, and silent connections give way before this one. */
  readonly spoke: () => void
  /** The connection was welcomed or is gone. Harmless the second time. */
  readonly leave: () => void
}

/** How a failed key is slowed down: each failure of late doubles the wait, up to a limit. */
const FIRST_PENALTY_MILLIS = 100
const MAX_DOUBLINGS = 4
const PENALTY_DECAY_MILLIS = 1000

/**
 * The door: how many connections may be without a welcome, for how long, and what a
 * wrong key costs (bridge protocol, F03, F43 and F48).
 *
 * A full house never locks anybody out: the oldest connection that has said nothing
 * gives way, and where all have spoken, the oldest of those. A right key is never
 * slowed down, however many wrong ones arrive.
 */
export class Admission extends Context.Service<
  Admission,
  {
    /** Takes a place for a new connection. */
    readonly enter: (evict: (why: Eviction) => void) => Slot
    /** Milliseconds that the refusal of a wrong key has to wait. */
    readonly penalty: () => number
    /** Number of places taken. */
    readonly pending: () => number
  }
>()("effect-frontend-tools/layers/bridge/Admission") {
  static readonly layer: Layer.Layer<Admission, never, BridgeConfig> = Layer.effect(
    Admission,
    Effect.gen(function* () {
      const { handshakeTimeoutMs, maxPendingHandshakes } = yield* BridgeConfig
      const context = yield* Effect.context()
      // Sets keep the order of arrival: the first is the oldest.
      const silent = new Set<Slot>()
      const spoken = new Set<Slot>()
      let failures = 0
      let lastFailureAt = 0

      const cut = (slot: Slot, why: Eviction) => {
        slot.leave()
        BridgeMetrics.handshakeRefused(why, context)
        slot.evict(why)
      }

      const deadlines = yield* Deadlines.make((slot: Slot) => cut(slot, "handshake timeout"))

      const enter = (evict: (why: Eviction) => void): Slot => {
        if (silent.size + spoken.size >= maxPendingHandshakes) {
          const oldest = silent.values().next().value ?? spoken.values().next().value
          if (oldest !== undefined) cut(oldest, "too many pending handshakes")
        }
        const slot: Slot = {
          evict,
          spoke: () => {
            deadlines.remove(deadline)
            if (silent.delete(slot)) spoken.add(slot)
          },
          leave: () => {
            deadlines.remove(deadline)
            silent.delete(slot)
            spoken.delete(slot)
          }
        }
        silent.add(slot)
        const deadline = deadlines.add(slot, handshakeTimeoutMs)
        return slot
      }

      const penalty = () => {
        const now = deadlines.now()
        // One failure is forgiven for each second without another.
        failures = Math.max(0, failures - Math.floor((now - lastFailureAt) / PENALTY_DECAY_MILLIS))
        lastFailureAt = now
        const millis = FIRST_PENALTY_MILLIS * 2 ** failures
        failures = Math.min(failures + 1, MAX_DOUBLINGS)
        return millis
      }

      return Admission.of({ enter, penalty, pending: () => silent.size + spoken.size })
    })
  )
}
