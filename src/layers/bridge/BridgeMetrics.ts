/**
 * What the bridge counts. Names and outcomes only: no argument, result or key is
 * ever an attribute, and no namespace, which would make a series per application.
 */
import { type Context, Metric } from "effect"
import type { CallFailure } from "../../domain/bridge/BridgeError.ts"

/** How a call ended: with its result, or with the tag of its failure. */
export type CallOutcome = "Success" | CallFailure["_tag"]

const calls = new Map<CallOutcome, Metric.Counter<number>>()

const callsWith = (outcome: CallOutcome) => {
  let counter = calls.get(outcome)
  if (counter === undefined) {
    counter = Metric.counter("frontend_tools_calls_total", {
      description: "Calls forwarded to applications, by outcome",
      incremental: true,
      attributes: { outcome }
    })
    calls.set(outcome, counter)
  }
  return counter
}

const callMillis = Metric.histogram("frontend_tools_call_duration_ms", {
  description: "Time from sending a call to its end, in milliseconds",
  boundaries: Metric.exponentialBoundaries({ start: 1, factor: 4, count: 9 })
})

/** Counts one ended call. */
export const callEnded = (outcome: CallOutcome, millis: number, context: Context.Context<never>) => {
  callsWith(outcome).updateUnsafe(1, context)
  callMillis.updateUnsafe(millis, context)
}

export const sessions = Metric.gauge("frontend_tools_sessions", { description: "Live sessions" })

export const tools = Metric.gauge("frontend_tools_mirrored_tools", { description: "Tools mirrored on the host" })

export const charactersReceived = Metric.counter("frontend_tools_received_characters_total", {
  description: "Size of the frames read from applications, in UTF-16 units",
  incremental: true
})

export const charactersSent = Metric.counter("frontend_tools_sent_characters_total", {
  description: "Size of the frames sent to applications, in UTF-16 units",
  incremental: true
})

const refusals = new Map<string, Metric.Counter<number>>()

/** Counts one connection that never became a session, by the reason. */
export const handshakeRefused = (reason: string, context: Context.Context<never>) => {
  let counter = refusals.get(reason)
  if (counter === undefined) {
    counter = Metric.counter("frontend_tools_handshakes_refused_total", {
      description: "Connections that never became a session, by reason",
      incremental: true,
      attributes: { reason }
    })
    refusals.set(reason, counter)
  }
  counter.updateUnsafe(1, context)
}
