import { Effect, type Fiber } from "effect"
import { isJsonObject, type JsonObject } from "../../domain/bridge/RemoteTool.ts"
import { BridgeServer } from "../bridge/BridgeServer.ts"
import { type MemoryPeer, makePair } from "../bridge/Connection.ts"

/** An application's end of a line in memory, for tests that speak in frames themselves. */
export interface TestLine extends MemoryPeer {
  /** The session at the other end. It ends when the session has, and all it owned is released. */
  readonly session: Fiber.Fiber<void>
  /** Sends a frame, whatever it is. */
  readonly say: (frame: unknown) => void
  /** The frames received since the last look. */
  readonly frames: () => ReadonlyArray<JsonObject>
}

const parse = (text: string): JsonObject => {
  const frame: unknown = JSON.parse(text)
  return isJsonObject(frame) ? frame : {}
}

/**
 * Connects to the bridge and says nothing yet. What the bridge sends arrives before
 * it goes on, and what is sent is handled before `say` returns.
 */
export const dial: Effect.Effect<TestLine, never, BridgeServer> = Effect.gen(function* () {
  const server = yield* BridgeServer
  const { connection, peer } = makePair()
  const session = yield* server.accept(connection)
  return {
    ...peer,
    session,
    say: (frame) => peer.send(JSON.stringify(frame)),
    frames: () => peer.take().map(parse)
  }
})
