/** Entry `effect-frontend-tools/mcp`: the bridge's tools for any MCP client. */
export type { ApproveWrites } from "./layers/host/McpApproval.ts"
export { McpHost, type McpHostOptions } from "./layers/host/McpHost.ts"
