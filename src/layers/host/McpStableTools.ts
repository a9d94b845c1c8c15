/**
 * Two tools that are always on the list, for MCP clients that read the list once
 * and take no notice of its changes.
 */
import { Context, Effect, Result, Schema } from "effect"
import { McpSchema, type McpServer } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import { failure, invalidArguments, type McpCalls, success } from "./McpCalls.ts"
import type { McpCatalog } from "./McpCatalog.ts"
import type { McpToolOutcome } from "./McpProtocols.ts"

const LIST_TOOLS = "frontend_tools_list_tools"
const CALL_TOOL = "frontend_tools_call_tool"

/** Names that no application's tool gets. */
export const stableToolNames: ReadonlySet<string> = new Set([LIST_TOOLS, CALL_TOOL])

const ListArguments = Schema.Struct({ namespace: Schema.optionalKey(Schema.String) })
const CallArguments = Schema.Struct({
  name: Schema.String,
  arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})

const decodeListArguments = Schema.decodeUnknownResult(ListArguments)
const decodeCallArguments = Schema.decodeUnknownResult(CallArguments)

const listTool = new McpSchema.Tool({
  name: LIST_TOOLS,
  title: "frontend_tools.list_tools",
  description:
    "Lists the tools that running applications offer right now, with what each is for and the JSON Schema of its " +
    `arguments. Call one of them by its name, or through ${CALL_TOOL} when it is not on your own list of tools.`,
  inputSchema: {
    type: "object",
    properties: {
      namespace: { type: "string", description: "Only the tools of this application. Leave it out for all of them." }
    },
    additionalProperties: false
  },
  outputSchema: {
    type: "object",
    properties: {
      tools: {
        type: "array",
        items: {
          type: "object",
          properties: {
            name: { type: "string" },
            namespace: { type: "string" },
            access: { type: "string", enum: ["read", "write"] },
            description: { type: "string" },
            inputSchema: { type: "object" },
            outputSchema: { type: "object" }
          },
          required: ["name", "namespace", "access", "description", "inputSchema"]
        }
      }
    },
    required: ["tools"]
  },
  annotations: McpSchema.ToolAnnotations.make({
    title: "frontend_tools.list_tools",
    readOnlyHint: true,
    destructiveHint: false
  })
})

const callTool = new McpSchema.Tool({
  name: CALL_TOOL,
  title: "frontend_tools.call_tool",
  description:
    `Calls a tool of a running application by the name that ${LIST_TOOLS} gives it. The same rules hold as for ` +
    "calling it directly: a tool that writes asks the person first.",
  inputSchema: {
    type: "object",
    properties: {
      name: { type: "string", description: `The tool's name, as ${LIST_TOOLS} shows it.` },
      arguments: { type: "object", description: "The tool's arguments, as its inputSchema describes them." }
    },
    required: ["name"],
    additionalProperties: false
  },
  annotations: McpSchema.ToolAnnotations.make({ title: "frontend_tools.call_tool", readOnlyHint: false })
})

const summary = ({ access, description, namespace, outputSchema, parametersSchema, publicName }: HostTool) => ({
  name: publicName,
  namespace,
  access,
  description,
  inputSchema: parametersSchema,
  ...(outputSchema === undefined ? {} : { outputSchema })
})

/** Adds the two tools to a server. */
export const addStableTools = (server: McpServer.McpServer["Service"], catalog: McpCatalog, calls: McpCalls) => {
  const list = (payload: unknown): McpSchema.CallToolResult => {
    const args = decodeListArguments(payload)
    if (Result.isFailure(args)) return invalidArguments(LIST_TOOLS, args.failure.message)
    const { namespace } = args.success
    const tools = catalog
      .entries()
      .filter(({ tool }) => namespace === undefined || tool.namespace === namespace)
      .map(({ tool }) => summary(tool))
    return success({ tools }, true)
  }

  const call = (payload: unknown): Effect.Effect<McpToolOutcome, never, McpSchema.McpRequestContext> => {
    const args = decodeCallArguments(payload)
    if (Result.isFailure(args)) return Effect.succeed(invalidArguments(CALL_TOOL, args.failure.message))
    const entry = catalog.find(args.success.name)
    return entry === undefined
      ? Effect.succeed(failure(`unknown tool "${args.success.name}"; ${LIST_TOOLS} shows the ones there are`))
      : calls.run(entry, args.success.arguments ?? {})
  }

  return Effect.all(
    [
      server.addTool({
        tool: listTool,
        annotations: Context.empty(),
        handle: (payload: unknown) => Effect.sync(() => list(payload))
      }),
      server.addTool({
        tool: callTool,
        annotations: Context.empty(),
        handle: (payload: unknown) => Effect.suspend(() => call(payload))
      })
    ],
    { discard: true }
  )
}
