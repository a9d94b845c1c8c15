import { Console, Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import * as Bridge from "../layers/bridge/Bridge.ts"
import { WebSocketListener } from "../layers/bridge/WebSocketListener.ts"
import { bridgeConfig, bridgeFlags } from "./bridgeFlags.ts"
import { VERSION } from "./version.ts"

/** `mcp`: the bridge and an MCP server over standard input and output, in one process. */
export const mcpCommand = Command.make(
  "mcp",
  {
    ...bridgeFlags,
    approveWrites: Flag.Literals("approve-writes", ["ask", "always", "never"]).pipe(
      Flag.withDescription(
        "Ask a person for each call that writes, through the client's elicitation; or let all run; or none"
      ),
      Flag.withDefault("ask")
    )
  },
  Effect.fnUntraced(function* ({ approveWrites, ...flags }) {
    // MCP is for this command alone.
    const { McpHost } = yield* Effect.promise(() => import("../layers/host/McpHost.ts"))
    yield* Effect.gen(function* () {
      const { url } = yield* WebSocketListener
      const { closed } = yield* McpHost
      yield* Console.error(`listening on ${url}`)
      yield* closed
    }).pipe(
      Effect.provide(
        Bridge.layer.pipe(
          Layer.provideMerge(McpHost.layer({ version: VERSION, approveWrites })),
          Layer.provide(bridgeConfig(flags))
        )
      )
    )
  })
).pipe(
  Command.withDescription("Run the bridge as an MCP server over standard input and output"),
  Command.withExamples([
    { command: "effect-frontend-tools mcp", description: "What an MCP client's configuration starts" }
  ])
)
