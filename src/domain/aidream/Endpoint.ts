/**
 * Paths and headers of the contract (part 2.0).
 *
 * A client starts a turn on the singular agent path and uses the plural forms
 * elsewhere; a backend serves every spelling, with and without a leading `/api`.
 */
import type { AgentId, ConversationId, RunId } from "./Ids.ts"

const conversation = (id: ConversationId) => `/ai/conversations/${encodeURIComponent(id)}`

export const startPath = (id: AgentId) => `/ai/agent/${encodeURIComponent(id)}`
export const continuePath = conversation
export const resultsPath = (id: ConversationId) => `${conversation(id)}/tool_results`
export const resumePath = (id: ConversationId) => `${conversation(id)}/resume`
export const pendingCallsPath = (id: ConversationId) => `${conversation(id)}/pending_calls`
export const cancelPath = (id: RunId) => `/ai/cancel/${encodeURIComponent(id)}`
export const userPendingCallsPath = "/ai/user/pending_calls"
export const desktopInstancesPath = "/desktop-instances"

/** Header names, lower case as a parser sees them. */
export const Header = {
  fingerprint: "x-fingerprint-id",
  runId: "x-request-id",
  conversationId: "x-conversation-id",
  organizationId: "x-organization-id",
  /** On a 503: `deployment` says that nothing was done, so a replay is safe. */
  drain: "x-matrx-drain"
} as const

/** The media type of an event stream. */
export const NDJSON = "application/x-ndjson"
