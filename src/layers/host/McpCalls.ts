/**
 * One tool call of an MCP client, from its arguments to its result.
 */
import { Effect } from "effect"
import { McpSchema } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import { isJsonObject } from "../../domain/bridge/RemoteTool.ts"
import type { CallOutcome } from "./CallOutcome.ts"
import { runAskingTool } from "./HostCall.ts"
import type { McpApproval } from "./McpApproval.ts"
import { isStructured, type McpEntry } from "./McpCatalog.ts"
import type { McpToolOutcome } from "./McpProtocols.ts"
import { jsonSchemaProfile } from "./SchemaProfile.ts"

export interface McpCalls {
  /**
   * Runs the tool of an entry. Checks the arguments, asks where the tool writes,
   * checks the result. Whatever goes wrong is a result that says so.
   */
  readonly run: (entry: McpEntry, args: unknown) => Effect.Effect<McpToolOutcome, never, McpSchema.McpRequestContext>
}

const text = (value: string) => [McpSchema.TextContent.make({ text: value })]

/** The result of a call that failed. */
export const failure = (message: string): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({ content: text(`Error: ${message}`), isError: true })

/** The result of a call that succeeded: any value as text, an object of a declared shape also as it is. */
export const success = (value: unknown, structured: boolean): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({
    content: text(JSON.stringify(value, null, 2) ?? "null"),
    ...(structured && isJsonObject(value) ? { structuredContent: value } : {})
  })

/** The result of a call whose arguments do not fit. */
export const invalidArguments = (publicName: string, details: string): McpSchema.CallToolResult =>
  failure(`invalid arguments for tool "${publicName}": ${details}`)

const toResult = ({ outputSchema }: HostTool, outcome: CallOutcome): McpSchema.CallToolResult =>
  outcome._tag === "Success" ? success(outcome.value, isStructured(outputSchema)) : failure(outcome.failure.message)

export const makeMcpCalls = ({ decide }: McpApproval): McpCalls => ({
  run: (entry, args) =>
    Effect.map(runAskingTool(entry, args, { profile: jsonSchemaProfile, decide }), (outcome) =>
      outcome._tag === "Ask" ? outcome.request : toResult(entry.tool, outcome)
    )
})
