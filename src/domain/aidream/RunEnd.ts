/** How the body of a run ended (part 3.6). */
import type { StreamEvent } from "./StreamEvent.ts"

/**
 * - `complete`: the run said so.
 * - `cancelled`: it was stopped; a resume that ends so still owes a continuation.
 * - `failed`: it reported an error; the obligation stays.
 * - `truncated`: the transport ended first; the run may still be alive on the backend.
 */
export type RunEnd = "complete" | "cancelled" | "failed" | "truncated"

/** The info code that announces a suspension. */
export const SUSPENDED = "suspended_awaiting_client"

/** How the run ended as far as one event tells; an error outweighs an `end` after it. */
export const runEndAfter = (before: RunEnd, event: StreamEvent): RunEnd => {
  switch (event._tag) {
    case "error":
      return "failed"
    case "end":
      return before === "failed" ? before : endOf(event.data.reason ?? "complete")
    default:
      return before
  }
}

/** Whether nothing that matters can follow, so an open body gets only the terminal grace. */
export const isTerminal = (event: StreamEvent): boolean =>
  event._tag === "end" ||
  event._tag === "error" ||
  (event._tag === "completion" && event.data.operation === "user_request")

/** Whether the event says that the run suspends. */
export const isSuspension = (event: StreamEvent): boolean => event._tag === "info" && event.data.code === SUSPENDED

// A reason nobody knows is no promise that the run is done, so what is owed stays owed.
const endOf = (reason: string): RunEnd => (reason === "complete" || reason === "cancelled" ? reason : "truncated")
