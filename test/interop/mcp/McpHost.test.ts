import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { mcpSuite } from "./mcpSuite.ts"

mcpSuite("The MCP host", (extra) =>
  Effect.succeed({
    command: process.execPath,
    args: [fileURLToPath(new URL("./fixture.ts", import.meta.url)), ...extra],
    connect: Effect.void,
    tellsAborts: true
  })
)
