/**
 * The todo list as a program of its own, for a bridge that runs elsewhere: with
 * `effect-frontend-tools serve`, or inside an MCP client with `effect-frontend-tools mcp`.
 *
 * `FRONTEND_TOOLS_KEY` is the key that the bridge knows it by, `FRONTEND_TOOLS_URL` where
 * the bridge is, unless that is at its usual port.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect } from "effect"
import { connect } from "./connect.ts"
import { makeTodoList } from "./todoList.ts"

const main = Effect.gen(function* () {
  const key = yield* Config.Redacted("FRONTEND_TOOLS_KEY")
  const url = yield* Config.String("FRONTEND_TOOLS_URL").pipe(Config.withDefault("ws://127.0.0.1:31870"))
  const { closed, names, namespace } = yield* connect({ url, key, tools: makeTodoList() })
  yield* Console.log(`connected to ${url} as ${namespace}; offers ${names.join(", ")}`)
  yield* closed
  yield* Console.log("the bridge is gone")
})

main.pipe(
  Effect.scoped,
  Effect.tapError(({ message }) => Console.error(message)),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
