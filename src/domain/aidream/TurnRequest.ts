/** Bodies that open a run: start, continue, resume (parts 2.1, 2.2, 2.4). */
import { Schema } from "effect"
import { fallback, JsonObject, maybe } from "./Absent.ts"
import { ApplyPolicy, ClientContext } from "./Envelope.ts"
import { ConversationId } from "./Ids.ts"
import { ToolSpec } from "./ToolSpec.ts"

/** User-level tool overrides. */
export const UserTools = Schema.Struct({
  add: fallback(Schema.Array(Schema.String), () => []),
  remove: fallback(Schema.Array(Schema.String), () => []),
  apply_policy: maybe(ApplyPolicy)
})
export type UserTools = typeof UserTools.Type

/** Fields every run-opening body shares. */
const runFields = {
  context: fallback(JsonObject, (): JsonObject => ({})),
  client: maybe(ClientContext),
  tools: fallback(Schema.Array(ToolSpec), () => []),
  /** When not null, the entire tool set of the run. */
  tools_replace: maybe(Schema.Array(ToolSpec)),
  user: maybe(UserTools),
  store: fallback(Schema.Boolean, () => true),
  config_overrides: maybe(JsonObject),
  writable_variables: fallback(Schema.Array(Schema.String), () => []),
  allow_context_create: fallback(Schema.Boolean, () => false),
  debug: fallback(Schema.Boolean, () => false),
  source_app: maybe(Schema.String),
  source_feature: maybe(Schema.String),
  organization_id: maybe(Schema.String),
  project_id: maybe(Schema.String),
  task_id: maybe(Schema.String),
  scope_ids: maybe(Schema.Array(Schema.String)),
  target_instance_id: maybe(Schema.String),
  initiation: maybe(Schema.Literals(["user", "auto"]))
}

/** Fields of a body that carries a user message. */
const messageFields = {
  ...runFields,
  /** Text, or an array of content parts. */
  user_input: maybe(Schema.Union([Schema.String, Schema.Array(JsonObject)])),
  stream: fallback(Schema.Boolean, () => true),
  max_iterations: fallback(Schema.Int.check(Schema.isGreaterThan(0)), () => 100),
  max_retries_per_iteration: fallback(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)), () => 2)
}

/** `POST /ai/agent/{agent_id}`. */
export const StartRequest = Schema.Struct({
  ...messageFields,
  conversation_id: maybe(ConversationId),
  /** When absent: true exactly when there is no `conversation_id`. */
  is_new: maybe(Schema.Boolean),
  variables: maybe(JsonObject)
})
export type StartRequest = typeof StartRequest.Type

/** `POST /ai/conversations/{conversation_id}`. Needs `user_input` or `retry`. */
export const ContinueRequest = Schema.Struct({
  ...messageFields,
  retry: fallback(Schema.Boolean, () => false)
})
export type ContinueRequest = typeof ContinueRequest.Type

/**
 * `POST /ai/conversations/{conversation_id}/resume`. Never carries a tool
 * result: the backend reads it from its ledger. A blank `user_request_id`
 * counts as none.
 */
export const ResumeRequest = Schema.Struct({
  ...runFields,
  user_request_id: maybe(Schema.String)
})
export type ResumeRequest = typeof ResumeRequest.Type
