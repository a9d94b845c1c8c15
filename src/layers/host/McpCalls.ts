/**
 * One tool call of an MCP client, from its arguments to its result.
 */
import { type Deferred, Effect } from "effect"
import { McpSchema } from "effect/ai"
import type { CallError } from "../../domain/bridge/BridgeError.ts"
import { type HostTool, WriteGrant, type WriteTool } from "../../domain/bridge/HostTool.ts"
import { isJsonObject } from "../../domain/bridge/RemoteTool.ts"
import type { McpApproval } from "./McpApproval.ts"
import { isStructured, type McpCatalog, type McpEntry } from "./McpCatalog.ts"
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

const toResult = ({ outputSchema, publicName }: HostTool, value: unknown): McpSchema.CallToolResult => {
  const mismatches = outputSchema === undefined ? [] : jsonSchemaProfile.mismatches(outputSchema, value, "result")
  return mismatches.length > 0
    ? failure(`tool "${publicName}" returned invalid output: ${mismatches.join("; ")}`)
    : success(value, isStructured(outputSchema))
}

const settle = (tool: HostTool, call: Effect.Effect<unknown, CallError>): Effect.Effect<McpSchema.CallToolResult> =>
  call.pipe(
    Effect.map((value) => toResult(tool, value)),
    Effect.catch((error) => Effect.succeed(failure(error.message))),
    Effect.catchDefect((defect) =>
      Effect.logError(`tool "${tool.publicName}" failed unexpectedly`, defect).pipe(
        Effect.as(failure(`tool "${tool.publicName}" failed unexpectedly`))
      )
    )
  )

export const makeMcpCalls = (catalog: McpCatalog, approval: McpApproval): McpCalls => {
  const runWrite = Effect.fnUntraced(function* (tool: WriteTool, args: unknown, gone: Deferred.Deferred<void>) {
    const decision = yield* approval.decide({ tool, args, gone })
    switch (decision._tag) {
      case "Ask":
        return decision.request
      case "Refused":
        return failure(decision.message)
      case "Granted":
        // The grant fits no other tool object: this is for the message only.
        return catalog.find(tool.publicName)?.tool === tool
          ? yield* settle(tool, Effect.provideService(tool.call(args), WriteGrant, decision.grant))
          : failure(`tool "${tool.publicName}" was taken back or replaced; nothing was run`)
    }
  })

  return {
    run: ({ gone, tool }, args) =>
      Effect.suspend((): Effect.Effect<McpToolOutcome, never, McpSchema.McpRequestContext> => {
        const mismatches = jsonSchemaProfile.mismatches(tool.parametersSchema, args, "arguments")
        if (mismatches.length > 0) return Effect.succeed(invalidArguments(tool.publicName, mismatches.join("; ")))
        return tool.access === "read" ? settle(tool, tool.call(args)) : runWrite(tool, args, gone)
      })
  }
}
