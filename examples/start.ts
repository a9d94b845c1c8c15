/**
 * `npm start`: the whole way from a model's call to a function inside a running program,
 * in one process and without any set-up. `npm start -- --once` ends after it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Config, Console, Effect, Exit, FileSystem, Layer, Redacted, References, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { HttpServer } from "effect/http"
import {
  Bridge,
  BridgeConfig,
  type BridgeEvent,
  BridgeServer,
  bridgeOptionsFromEnv,
  MemoryHost,
  WebSocketListener
} from "effect-frontend-tools"
import { generateClientKey } from "effect-frontend-tools/protocol"
import { nextSteps } from "./nextSteps.ts"
import { connect } from "./todo-list/connect.ts"
import { makeTodoList } from "./todo-list/todoList.ts"
import * as TodoPage from "./todo-page/server.ts"

const NAMESPACE = "todo"

/** Who says or does it, and what. */
const tell = (who: string, what: string) => Console.log(`${who.padEnd(12)}${what}`)

/** Calls a tool as a model's host would, and tells of it. */
const call = Effect.fnUntraced(function* (name: string, args: object) {
  const host = yield* MemoryHost
  yield* tell("model", `calls ${name} with ${JSON.stringify(args)}`)
  const result = yield* host.call(name, args, ({ label }) =>
    Effect.as(
      tell("person", `${label} changes something: may it? Yes (said here by the example, with MCP by you)`),
      true
    )
  )
  yield* tell("application", `answers ${JSON.stringify(result)}`)
})

const describe = (event: BridgeEvent): string => {
  switch (event._tag) {
    case "SessionOpened":
      return `${event.namespace} has connected`
    case "SessionClosed":
      return `${event.namespace} is gone: ${event.reason}`
    case "ToolsRegistered":
      return `${event.namespace} offers ${event.names.join(", ")}`
    case "ToolsUnregistered":
      return `${event.namespace} no longer offers ${event.names.join(", ")}`
    case "HandshakeRefused":
      return `a connection was refused: ${event.reason}`
  }
}

const PAGE_PORT = 31_880

/** The todo page, which can be tried without a model, until the scope closes. */
const servePage = (url: string) =>
  Effect.gen(function* () {
    const memory = yield* MemoryHost
    const onCall = (name: string, args: unknown) => tell("model", `calls ${name} with ${JSON.stringify(args)}`)
    const on = (port: number) => Layer.build(TodoPage.layer({ port, bridge: url, host: { memory, onCall } }))
    // Always at the same place if it can be: a browser keeps the page's key with its address.
    const page = yield* on(PAGE_PORT).pipe(Effect.catchTag("ServeError", () => on(0)))
    yield* HttpServer.addressFormattedWith((address) =>
      tell("page", `a todo page to try in a browser is at ${address}`)
    ).pipe(Effect.provide(page))
  })

/** What happens on a bridge once it is there. */
const play = (key: Redacted.Redacted, once: boolean) =>
  Effect.gen(function* () {
    const { url } = yield* WebSocketListener
    const { events } = yield* BridgeServer
    yield* tell("bridge", `listening on ${url}`)

    const { names } = yield* connect({ url, key, tools: makeTodoList() })
    yield* tell("application", `a todo list has connected and offers ${names.join(", ")}`)
    yield* call("todo__list_todos", {})
    yield* call("todo__add_todo", { title: "Read the README" })
    yield* call("todo__list_todos", {})
    if (once) return

    yield* servePage(url)
    yield* Console.log(nextSteps(url))
    yield* Stream.runForEach(events, (event) => tell("bridge", describe(event)))
  }).pipe(Effect.scoped)

/** The bridge on this port. Nothing of it outlives the program: its roster is in a temporary folder. */
const bridge = (port: number, key: Redacted.Redacted) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const stateDir = yield* FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped())
      const env = yield* bridgeOptionsFromEnv
      const todo = { namespace: NAMESPACE, key: Redacted.value(key) }
      return Bridge.layer.pipe(
        Layer.provideMerge(MemoryHost.layer()),
        Layer.provide(
          BridgeConfig.layer({ ...env, port, stateDir, staticClients: [...(env.staticClients ?? []), todo] })
        )
      )
    })
  )

const start = Effect.fnUntraced(function* (once: boolean) {
  const port = yield* Config.Int("FRONTEND_TOOLS_PORT").pipe(Config.withDefault(31_870))
  const key = Redacted.make(generateClientKey())
  const on = (chosen: number) => Effect.provide(play(key, once), bridge(chosen, key))
  yield* on(port).pipe(
    Effect.catchTag("ListenError", ({ message }) =>
      Effect.andThen(tell("bridge", `cannot have port ${port} (${message}), so it takes a free one`), on(0))
    )
  )
})

const command = Command.make(
  "npm start --",
  {
    once: Flag.Boolean("once").pipe(
      Flag.withDescription("End when the example has been played"),
      Flag.withDefault(false)
    )
  },
  ({ once }) => start(once)
).pipe(Command.withDescription("Show a model's calls reaching a running application, and stay up to be tried"))

Command.run(command, { version: "" }).pipe(
  Effect.tapError(({ message }) => Console.error(message)),
  Effect.provide(NodeServices.layer),
  Effect.provide(Layer.succeed(References.MinimumLogLevel, "Error")),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // A signal is the ordinary way to end it.
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
  })
)
