/** The bridge and the MCP host in one program, with the flags of the command line that this suite needs. */
import { parseArgs } from "node:util"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Logger, Schema } from "effect"
import { Bridge, BridgeConfig } from "../../../src/index.ts"
import { McpHost } from "../../../src/mcp.ts"

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "state-dir": { type: "string" },
    key: { type: "string", default: "" },
    "approve-writes": { type: "string", default: "ask" }
  }
})
const decodeApproveWrites = Schema.decodeUnknownSync(Schema.Literals(["ask", "always", "never"]))

Effect.flatMap(McpHost, ({ closed }) => closed).pipe(
  Effect.provide(
    Bridge.layer.pipe(
      Layer.provide(
        BridgeConfig.layer({
          port: Number(values.port),
          stateDir: values["state-dir"],
          staticClients: [{ namespace: "shop", key: values.key }]
        })
      ),
      Layer.provideMerge(
        McpHost.layer({ version: "0.0.0", approveWrites: decodeApproveWrites(values["approve-writes"]) })
      ),
      Layer.provide(NodeServices.layer),
      Layer.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)]))
    )
  ),
  NodeRuntime.runMain
)
