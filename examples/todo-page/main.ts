/**
 * The todo page alone, for a bridge that runs elsewhere: inside an MCP client with
 * `effect-frontend-tools mcp`, or with `effect-frontend-tools serve`.
 *
 * `FRONTEND_TOOLS_URL` is where the bridge is, unless that is at its usual port.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import * as TodoPage from "./server.ts"

const main = Effect.gen(function* () {
  const bridge = yield* Config.String("FRONTEND_TOOLS_URL").pipe(Config.withDefault("ws://127.0.0.1:31870"))
  const port = yield* Config.Int("TODO_PAGE_PORT").pipe(Config.withDefault(31_880))
  const told = Layer.effectDiscard(
    HttpServer.addressFormattedWith((url) => Console.log(`the todo page is at ${url}; its bridge at ${bridge}`))
  )
  return yield* Layer.launch(Layer.provide(told, TodoPage.layer({ port, bridge })))
})

NodeRuntime.runMain(main)
