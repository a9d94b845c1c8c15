import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type BridgeOptionsInput, MemoryHost } from "../../src/index.ts"
import { TestBridge, TestLine } from "../../src/testing.ts"

/** A whole bridge without sockets, on the memory host, that admits these: the key of `demo` is `demo-key`. */
export const memoryBridge = (options: BridgeOptionsInput = {}) =>
  TestBridge.layerMemory({
    staticClients: ["demo", "shop", "other"].map((namespace) => ({ namespace, key: `${namespace}-key` })),
    logLevel: "Info",
    ...options
  })

/** An application's end of a line in memory, which speaks in frames. */
export type Application = TestLine.TestLine

/** Connects without a hello. */
export const dial = TestLine.dial

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
