import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Layer, Schema, Stream } from "effect"
import { FrontendToolsClient, Tool } from "effect-frontend-tools/client"

const todos = ["Read the README"]

const list = Tool.make({
  name: "list",
  description: "List everything on the todo list.",
  parameters: Schema.Struct({}),
  success: Schema.Array(Schema.String),
  readOnly: true,
  handler: () => Effect.succeed(todos)
})

const add = Tool.make({
  name: "add",
  description: "Put something on the todo list.",
  parameters: Schema.Struct({ title: Schema.NonEmptyString }),
  handler: ({ title }) =>
    todos.includes(title)
      ? Effect.fail(Tool.ToolFailure.denied(`"${title}" is on the list already`))
      : Effect.sync(() => ({ count: todos.push(title) }))
})

const program = Effect.gen(function* () {
  const client = yield* FrontendToolsClient
  // Registered until this scope closes, in this session and every later one.
  const { publicNames } = yield* client.register(list, add)
  yield* Console.log(`registered ${(yield* publicNames).join(", ")}`)
  yield* Stream.runForEach(client.states, ({ message, status }) => Console.log(status, message ?? ""))
})

const client = Layer.unwrap(
  Effect.gen(function* () {
    const url = yield* Config.String("BRIDGE_URL").pipe(Config.withDefault("ws://127.0.0.1:31870"))
    const key = yield* Config.Redacted("TODO_KEY")
    return FrontendToolsClient.layer({ url, key })
  })
)

program.pipe(Effect.scoped, Effect.provide(client), NodeRuntime.runMain)
