/**
 * Identifiers of the contract.
 *
 * They are all opaque strings on the wire and easy to mix up: `X-Request-ID`
 * names one HTTP run, `user_request_id` the whole turn over all its runs, and a
 * claim kept under the wrong one suppresses a resume. Brands keep them apart.
 */
import { Schema } from "effect"

/** A conversation. Minted by whoever starts it. */
export const ConversationId = Schema.NonEmptyString.pipe(Schema.brand("ConversationId"))
export type ConversationId = typeof ConversationId.Type

/** One turn: a user message and everything the model does for it, over all suspensions. */
export const UserRequestId = Schema.NonEmptyString.pipe(Schema.brand("UserRequestId"))
export type UserRequestId = typeof UserRequestId.Type

/** One streaming run of part of a turn; the `X-Request-ID` header, and what cancel takes. */
export const RunId = Schema.NonEmptyString.pipe(Schema.brand("RunId"))
export type RunId = typeof RunId.Type

/** One tool call, named by the model's provider. */
export const CallId = Schema.NonEmptyString.pipe(Schema.brand("CallId"))
export type CallId = typeof CallId.Type

/** An agent, or one version of an agent. */
export const AgentId = Schema.NonEmptyString.pipe(Schema.brand("AgentId"))
export type AgentId = typeof AgentId.Type

/** Names one call of one conversation: the same whether it came live or cold (part 6.2). */
export const keyOf = (conversationId: ConversationId, callId: CallId): string =>
  `${encodeURIComponent(conversationId)}/${encodeURIComponent(callId)}`
