import { Console, Effect, Layer, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import * as Bridge from "../layers/bridge/Bridge.ts"
import type { BridgeEvent } from "../layers/bridge/BridgeEvent.ts"
import { BridgeServer } from "../layers/bridge/BridgeServer.ts"
import { WebSocketListener } from "../layers/bridge/WebSocketListener.ts"
import { MemoryHost } from "../layers/host/MemoryHost.ts"
import { bridgeConfig, bridgeFlags } from "./bridgeFlags.ts"

/** One event as a JSON line: its name in the spelling of the command line, and its fields. */
const toLine = ({ _tag, ...fields }: BridgeEvent) =>
  JSON.stringify({ event: _tag.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase(), ...fields })

/** `serve`: the bridge alone. Tools are mirrored and nobody calls them but the program itself. */
export const serveCommand = Command.make(
  "serve",
  {
    ...bridgeFlags,
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print one JSON object per event on standard output, never a key"),
      Flag.withDefault(false)
    )
  },
  ({ json, ...flags }) =>
    Effect.gen(function* () {
      const { port, url } = yield* WebSocketListener
      const { events } = yield* BridgeServer
      if (!json) {
        yield* Console.log(`listening on ${url}`)
        return yield* Effect.never
      }
      yield* Console.log(JSON.stringify({ event: "listening", url, port }))
      return yield* Stream.runForEach(events, (event) => Console.log(toLine(event)))
    }).pipe(Effect.provide(Bridge.layer.pipe(Layer.provide(MemoryHost.layer()), Layer.provide(bridgeConfig(flags)))))
).pipe(
  Command.withDescription("Run the bridge alone, for trying out an application"),
  Command.withExamples([
    { command: "effect-frontend-tools serve --port 0 --json", description: "Any free port, events as JSON lines" }
  ])
)
