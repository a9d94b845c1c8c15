import { Console, Effect, Layer, Option } from "effect"
import { HttpServer } from "effect/http"
import * as LoopbackServer from "../layers/backend/LoopbackServer.ts"
import * as ScriptedModel from "../layers/backend/ScriptedModel.ts"

/** The flags of the `backend` command. */
export interface BackendOptions {
  readonly port: number
  readonly db: Option.Option<string>
  readonly script: Option.Option<string>
}

/** Serves the backend until it is interrupted, and says where. */
export const serveBackend = Effect.fnUntraced(function* ({ db, port, script }: BackendOptions) {
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
