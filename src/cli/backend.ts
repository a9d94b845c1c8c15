import { Console, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { HttpServer } from "effect/http"
import * as LoopbackServer from "../layers/backend/LoopbackServer.ts"
import * as ScriptedModel from "../layers/backend/ScriptedModel.ts"

/** `backend`: the backend half of the outbound contract on loopback, with a scripted model. */
export const backendCommand = Command.make(
  "backend",
  {
    port: Flag.Int("port").pipe(Flag.withDescription("Port to listen on; 0 takes a free one"), Flag.withDefault(0)),
    db: Flag.String("db").pipe(
      Flag.withDescription("SQLite file that keeps conversations; without it they are gone when the server stops"),
      Flag.optional
    ),
    script: Flag.String("script").pipe(
      Flag.withDescription("JSON file with the model's answers and, optionally, a tool catalog"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ db, port, script }) {
    const read = Option.isSome(script) ? yield* ScriptedModel.readScript(script.value) : undefined
    const server = LoopbackServer.layer({
      port,
      database: { filename: Option.getOrElse(db, () => ":memory:") },
      model: read === undefined ? ScriptedModel.layerDemo : ScriptedModel.layerScript(read),
      catalog: read?.catalog
    })
    const announced = Layer.effectDiscard(
      Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
        Console.log(
          `listening on ${address._tag === "UnixPathAddress" ? address.path : `http://127.0.0.1:${address.port}`}`
        )
      )
    )
    return yield* Layer.launch(announced.pipe(Layer.provide(server)))
  })
).pipe(
  Command.withDescription("Serve the backend half of the outbound contract on loopback, with a scripted model"),
  Command.withExamples([
    { command: "effect-frontend-tools backend --db chats.db", description: "A free port, conversations kept in a file" }
  ])
)
