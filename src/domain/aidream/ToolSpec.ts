/** Tools named in a request body (part 2.7). */
import { Schema } from "effect"
import { fallback, JsonObject, maybe } from "./Absent.ts"

/** A tool of the backend's registry. `tool_id` wins over `name`. */
export const RegisteredToolSpec = Schema.Struct({
  kind: Schema.tag("registered"),
  name: Schema.NonEmptyString,
  tool_id: maybe(Schema.String),
  delegate: fallback(Schema.Boolean, () => false)
})
export type RegisteredToolSpec = typeof RegisteredToolSpec.Type

/** The name an inline tool may carry. */
export const InlineToolName = Schema.String.check(Schema.isPattern(/^[a-zA-Z0-9_:-]{1,64}$/))

/** A tool that exists only in this request; it is always delegated. */
export const InlineToolSpec = Schema.Struct({
  kind: Schema.tag("inline"),
  name: InlineToolName,
  description: fallback(Schema.String, () => ""),
  input_schema: fallback(JsonObject, (): JsonObject => ({ type: "object", properties: {}, required: [] }))
})
export type InlineToolSpec = typeof InlineToolSpec.Type

/** An agent projected as a tool. Part of the wire, refused by this contract's backend. */
export const AgentToolSpec = Schema.StructWithRest(
  Schema.Struct({ kind: Schema.tag("agent"), agent_id: Schema.NonEmptyString }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
export type AgentToolSpec = typeof AgentToolSpec.Type

export const ToolSpec = Schema.Union([RegisteredToolSpec, InlineToolSpec, AgentToolSpec])
export type ToolSpec = typeof ToolSpec.Type
