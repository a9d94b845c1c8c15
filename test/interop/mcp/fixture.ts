/** A program that offers the shop's tools over MCP with nothing but the MCP host. */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import { Effect, Exit, Logger, Schema, Scope } from "effect"
import { ApplicationError, CallError } from "../../../src/domain/bridge/BridgeError.ts"
import type { HostTool } from "../../../src/domain/bridge/HostTool.ts"
import { ToolHost } from "../../../src/layers/host/ToolHost.ts"
import { McpHost } from "../../../src/mcp.ts"
import { readTool, writeTool } from "../../support/hostTools.ts"
import { makeShop, SHOP_NAMESPACE, type ShopTool } from "./shop.ts"

const decodeArguments = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))
const decodeApproveWrites = Schema.decodeUnknownSync(Schema.Literals(["ask", "always", "never"]))

const toHostTool = (tool: ShopTool): HostTool => {
  const run = (args: unknown) =>
    Effect.tryPromise({
      try: () => tool.execute(decodeArguments(args)),
      catch: (error) =>
        new CallError({
          reason: new ApplicationError({ code: "internal", detail: error instanceof Error ? error.message : "" })
        })
    }).pipe(Effect.onInterrupt(() => Effect.logInfo(`${tool.name} aborted`)))
  return (tool.readOnly ? readTool : writeTool)(tool.name, run, { ...tool, namespace: SHOP_NAMESPACE })
}

const main = Effect.gen(function* () {
  const host = yield* ToolHost
  const mcp = yield* McpHost
  const extraScope = { current: yield* Scope.make() }
  const tools = makeShop((extra, on) =>
    Effect.runPromise(
      on
        ? host.register(toHostTool(extra)).pipe(Scope.provide(extraScope.current))
        : Effect.suspend(() => {
            const closing = extraScope.current
            extraScope.current = Scope.makeUnsafe()
            return Scope.close(closing, Exit.void)
          })
    )
  )
  yield* Effect.forEach(tools, (tool) => host.register(toHostTool(tool)), { discard: true })
  yield* mcp.closed
}).pipe(Effect.scoped)

const { values } = parseArgs({ options: { "approve-writes": { type: "string", default: "ask" } } })

main.pipe(
  Effect.provide(McpHost.layer({ version: "0.0.0", approveWrites: decodeApproveWrites(values["approve-writes"]) })),
  Effect.provide(NodeStdio.layer),
  Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
  NodeRuntime.runMain
)
