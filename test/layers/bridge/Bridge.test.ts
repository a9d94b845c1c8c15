import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Exit, Layer, Option } from "effect"
import {
  Admission,
  Bridge,
  BridgeConfig,
  BridgeServer,
  CallDispatcher,
  MemoryHost,
  MemoryRoster,
  MirrorRegistry,
  Roster,
  SessionDirectory,
  WebSocketListener
} from "../../../src/index.ts"
import { TestApplication, TestBridge, TestTool } from "../../../src/testing.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const environment = (env: Record<string, string>) => ConfigProvider.layer(ConfigProvider.fromEnv({ env }))

describe("Bridge.layerConfig", () => {
  const fromEnvironment = Bridge.layerConfig.pipe(
    Layer.provideMerge(MemoryHost.layer()),
    Layer.provide(NodeServices.layer)
  )

  it.live("listens as the environment says", () =>
    Effect.gen(function* () {
      const stateDir = yield* temporaryFolder
      const context = yield* Layer.build(
        fromEnvironment.pipe(
          Layer.provide(
            environment({
              FRONTEND_TOOLS_PORT: "0",
              FRONTEND_TOOLS_STATE_DIR: stateDir,
              FRONTEND_TOOLS_STATIC_CLIENTS: "demo=demo-key"
            })
          )
        )
      )
      assert.isAbove(Context.get(context, WebSocketListener).port, 0)
      assert.strictEqual(Context.get(context, BridgeConfig).stateDir, stateDir)
      assert.isTrue(Option.isSome(yield* Context.get(context, Roster).authenticate("demo-key")))
    })
  )

  for (const [env, tag] of [
    [{ FRONTEND_TOOLS_PORT: "seven" }, "ConfigError"],
    [{ FRONTEND_TOOLS_PORT: "70000" }, "BridgeConfigError"],
    [{ FRONTEND_TOOLS_PORT: "0", FRONTEND_TOOLS_STATIC_CLIENTS: "not a name=k" }, "RosterMalformed"]
  ] as const) {
    it.live(`fails with ${tag}, and leaves nothing behind`, () =>
      Effect.gen(function* () {
        const stateDir = yield* temporaryFolder
        const settings = environment({ FRONTEND_TOOLS_STATE_DIR: stateDir, ...env })
        const exit = yield* Effect.exit(Effect.scoped(Layer.build(fromEnvironment.pipe(Layer.provide(settings)))))
        assert.strictEqual(Option.getOrThrow(Exit.findErrorOption(exit))._tag, tag)
      })
    )
  }
})

describe("the parts of the bridge", () => {
  it.live("can each be another", () => {
    const met: Array<string> = []
    // Services of one's own that note what they are asked and leave the rest to ours.
    const MyAdmission = Layer.effect(
      Admission,
      Effect.map(Admission, (admission) => ({
        ...admission,
        enter: (evict) => {
          met.push("admission")
          return admission.enter(evict)
        }
      }))
    ).pipe(Layer.provide(Admission.layer))
    const MyDispatcher = Layer.effect(
      CallDispatcher,
      Effect.map(CallDispatcher, (dispatcher) => ({
        ...dispatcher,
        open: (target) => {
          met.push("dispatcher")
          return dispatcher.open(target)
        }
      }))
    ).pipe(Layer.provide(CallDispatcher.layer))
    const MyRoster = Layer.effect(
      Roster,
      Effect.map(Roster, (roster) => ({
        ...roster,
        authenticate: (key) => {
          met.push("roster")
          return roster.authenticate(key)
        }
      }))
    ).pipe(Layer.provide(MemoryRoster.layer))
    const bridge = Bridge.layerNoDeps.pipe(
      Layer.provideMerge(
        Layer.mergeAll(MyAdmission, MyDispatcher, MirrorRegistry.layer, SessionDirectory.layer, MyRoster)
      ),
      Layer.provideMerge(MemoryHost.layer()),
      Layer.provide(BridgeConfig.layer({ port: 0 }))
    )
    return Effect.gen(function* () {
      const cart = TestTool.read({ name: "cart", run: () => Effect.succeed(1) })
      yield* TestApplication.connect("shop", { tools: [cart] })
      assert.strictEqual(yield* MemoryHost.use((host) => host.call("shop__cart", {})), 1)
      assert.deepStrictEqual(Array.from(new Set(met)).sort(), ["admission", "dispatcher", "roster"])
      assert.isDefined((yield* MemoryHost).tool("frontend_tools_list_clients"))
    }).pipe(Effect.provide(bridge))
  })

  it.effect("take a roster of the test's own", () =>
    Effect.gen(function* () {
      yield* TestApplication.connect("shop", { key: "any key" })
      assert.strictEqual((yield* BridgeServer.use(({ sessions }) => sessions)).length, 1)
    }).pipe(
      Effect.provide(
        TestBridge.layerNoRoster().pipe(
          Layer.provideMerge(MemoryHost.layer()),
          Layer.provideMerge(
            Layer.effect(
              Roster,
              Effect.map(Roster, (roster) => ({ ...roster, authenticate: () => roster.authenticate("shop-key") }))
            ).pipe(
              Layer.provide(MemoryRoster.layer),
              Layer.provide(BridgeConfig.layer({ staticClients: [{ namespace: "shop", key: "shop-key" }] }))
            )
          )
        )
      )
    )
  )
})
