/**
 * The tools that an MCP client can see right now, in the form and the order in
 * which it sees them.
 */
import { Result, Schema } from "effect"
import { McpSchema } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import { type HostCatalog, type HostEntry, makeHostCatalog } from "./HostCatalog.ts"
import { jsonSchemaProfile } from "./SchemaProfile.ts"

export type McpEntry = HostEntry<McpSchema.Tool>
export type McpCatalog = HostCatalog<McpSchema.Tool>

/** Whether MCP can carry results of this schema as structured content. */
export const isStructured = (schema: HostTool["outputSchema"]): boolean => schema?.type === "object"

const decodeDescriptor = Schema.decodeUnknownResult(McpSchema.Tool)

const describe = (tool: HostTool): Result.Result<McpSchema.Tool, string> => {
  const { outputSchema, parametersSchema } = tool
  const reads = tool.access === "read"
  return decodeDescriptor({
    name: tool.publicName,
    title: tool.label,
    description: tool.description,
    inputSchema: parametersSchema,
    ...(isStructured(outputSchema) ? { outputSchema } : {}),
    annotations: { title: tool.label, readOnlyHint: reads, destructiveHint: !reads }
  }).pipe(Result.mapError((error) => error.message))
}

/** A catalog that refuses the `reserved` names, which the host uses itself. */
export const makeMcpCatalog = (reserved: ReadonlySet<string>) =>
  makeHostCatalog({ profile: jsonSchemaProfile, reserved, show: describe })
