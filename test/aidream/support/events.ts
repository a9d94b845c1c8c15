/** Lines of a run's stream, as a backend writes them. */
export type Line = Readonly<Record<string, unknown>>

export const chunk = (text: string): Line => ({ e: "c", t: text })
export const requestReserved = (id: string): Line => ({
  event: "record_reserved",
  data: { db_project: "p", table: "cx_user_request", record_id: id, status: "pending", parent_refs: {}, metadata: {} }
})
export const delegated = (callId: string, tool: string, args: unknown = {}, more: Line = {}): Line => ({
  event: "tool_event",
  data: { event: "tool_delegated", call_id: callId, tool_name: tool, data: { arguments: args, ...more } }
})
export const phaseComplete: Line = { event: "phase", data: { phase: "complete" } }
export const suspendedInfo = (...callIds: ReadonlyArray<string>): Line => ({
  event: "info",
  data: {
    code: "suspended_awaiting_client",
    system_message: "waiting",
    metadata: { iteration: 1, will_continue: false, pending_call_ids: callIds }
  }
})
export const end = (reason = "complete"): Line => ({ event: "end", data: { reason } })
export const failure = (message: string): Line => ({ event: "error", data: { error_type: "x", message } })

/** A whole run that suspends for these calls. */
export const suspends = (request: string, ...calls: ReadonlyArray<Line>): ReadonlyArray<Line> => [
  requestReserved(request),
  ...calls,
  phaseComplete,
  suspendedInfo(),
  end()
]

/** A whole run that answers. */
export const answers = (text: string): ReadonlyArray<Line> => [chunk(text), end()]

export const encodeLine = (line: Line): Uint8Array => new TextEncoder().encode(`${JSON.stringify(line)}\n`)
