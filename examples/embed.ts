import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Stream } from "effect"
import { Bridge, BridgeConfig, BridgeServer, MemoryHost, WebSocketListener } from "effect-frontend-tools"

const program = Effect.gen(function* () {
  const { url } = yield* WebSocketListener
  const { events } = yield* BridgeServer
  const host = yield* MemoryHost
  yield* Console.log(`applications connect to ${url}`)

  // As soon as an application offers tools, call the first that only reads.
  yield* Stream.runForEach(events, (event) =>
    Effect.gen(function* () {
      if (event._tag !== "ToolsRegistered") return
      const tool = (yield* host.tools).find(
        ({ access, namespace }) => access === "read" && namespace === event.namespace
      )
      if (tool === undefined) return
      const result = yield* host.call(tool.publicName, {})
      yield* Console.log(`${tool.publicName} answered ${JSON.stringify(result)}`)
    }).pipe(Effect.catchTag("CallError", (error) => Console.error(error.message)))
  )
})

// The settings come from FRONTEND_TOOLS_* variables: a port, applications with their keys.
const settings = BridgeConfig.layerConfig

program.pipe(
  Effect.provide(Bridge.layer.pipe(Layer.provideMerge(MemoryHost.layer()), Layer.provide(settings))),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
