import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { Effect, type Fiber, Layer } from "effect"
import {
  Bridge,
  BridgeConfig,
  type BridgeOptionsInput,
  BridgeServer,
  MemoryHost,
  type MemoryPeer,
  makePair,
  Roster
} from "../../src/index.ts"
import { temporaryFolder } from "./temporaryFolder.ts"

/** Applications that every bridge of the tests admits: the key of `demo` is `demo-key`. */
const staticClients = ["demo", "shop", "other"].map((namespace) => ({ namespace, key: `${namespace}-key` }))

/** A whole bridge without sockets, on the memory host. */
export const memoryBridge = (options: BridgeOptionsInput = {}) =>
  Layer.unwrap(
    Effect.map(temporaryFolder, (stateDir) =>
      Bridge.layerServer.pipe(
        Layer.provideMerge(Roster.layer),
        Layer.provideMerge(MemoryHost.layer()),
        Layer.provideMerge(BridgeConfig.layer({ stateDir, staticClients, ...options })),
        Layer.provide(NodeServices.layer)
      )
    )
  )

/** An application's end of a connection in memory, which speaks in frames. */
export interface Application extends MemoryPeer {
  readonly fiber: Fiber.Fiber<void>
  readonly say: (frame: unknown) => void
  /** The frames received since the last look. */
  readonly frames: () => ReadonlyArray<Record<string, unknown>>
}

/** Connects without a hello. */
export const dial = Effect.gen(function* () {
  const server = yield* BridgeServer
  const { connection, peer } = makePair()
  const fiber = yield* server.accept(connection)
  const application: Application = {
    ...peer,
    fiber,
    say: (frame) => peer.send(JSON.stringify(frame)),
    frames: () => peer.take().map((text) => JSON.parse(text))
  }
  return application
})

/** Connects and says hello. */
export const hello = Effect.fnUntraced(function* (key: string) {
  const application = yield* dial
  application.say({ type: "hello", protocol: 5, key })
  return application
})

/** Connects as one of the admitted applications. */
export const connect = Effect.fnUntraced(function* (namespace: string) {
  const application = yield* hello(`${namespace}-key`)
  assert.deepStrictEqual(application.frames(), [
    { type: "welcome", protocol: 5, server: "frontend-tools-bridge", namespace }
  ])
  return application
})

/** A tool as an application registers it. */
export const tool = (name: string, extra: object = {}) => ({
  name,
  description: `does ${name}`,
  parametersSchema: { type: "object" },
  ...extra
})

/** Registers read tools of these names. */
export const registerReads = (application: Application, ...names: ReadonlyArray<string>) => {
  application.say({ type: "register", tools: names.map((name) => tool(name, { readOnly: true })) })
  return application.frames()
}

/** Public names on the memory host. */
export const listed = MemoryHost.use((host) => host.tools).pipe(
  Effect.map((tools) => tools.map(({ publicName }) => String(publicName)))
)
