/**
 * What each Layer needs, gives and fails with. The compiler is the judge (`npm run
 * types`); that these run says only that they are there.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { type Config, Effect, type FileSystem, Layer, type Path, type Stdio } from "effect"
import {
  type Admission,
  Bridge,
  BridgeConfig,
  type BridgeConfigError,
  type BridgeServer,
  CallDispatcher,
  type CallError,
  type HostTool,
  type ListenError,
  MemoryHost,
  MemoryRoster,
  MirrorRegistry,
  type ReadTool,
  Roster,
  type RosterFileError,
  type RosterMalformed,
  SessionDirectory,
  type ToolHost,
  ToolHosts,
  type ToolRefused,
  type WebSocketListener,
  type WriteGrant,
  type WriteTool
} from "../../../src/index.ts"
import { McpHost } from "../../../src/mcp.ts"
import { TestApplication, TestBridge, TestTool } from "../../../src/testing.ts"
import { type Approval, type MirroredToolkit, ToolkitHost } from "../../../src/toolkit.ts"

type Core = Admission | BridgeServer | CallDispatcher | MirrorRegistry | SessionDirectory
type Platform = FileSystem.FileSystem | Path.Path
type CannotStart = ListenError | RosterFileError | RosterMalformed | ToolRefused

describe("the Layers of the bridge", () => {
  it("say what they need, give and fail with", () => {
    expectTypeOf(Bridge.layer).toEqualTypeOf<
      Layer.Layer<Core | Roster | WebSocketListener, CannotStart, BridgeConfig | Platform | ToolHost>
    >()
    expectTypeOf(Bridge.layerConfig).toEqualTypeOf<
      Layer.Layer<
        BridgeConfig | Core | Roster | WebSocketListener,
        BridgeConfigError | CannotStart | Config.ConfigError,
        Platform | ToolHost
      >
    >()
    expectTypeOf(Bridge.layerNoRoster).toEqualTypeOf<
      Layer.Layer<Core | WebSocketListener, ListenError | ToolRefused, BridgeConfig | Roster | ToolHost>
    >()
    expectTypeOf(Bridge.layerServer).toEqualTypeOf<Layer.Layer<Core, never, BridgeConfig | Roster | ToolHost>>()
    expectTypeOf(Bridge.layerNoDeps).toEqualTypeOf<
      Layer.Layer<
        BridgeServer | WebSocketListener,
        ListenError | ToolRefused,
        Admission | BridgeConfig | CallDispatcher | MirrorRegistry | Roster | SessionDirectory | ToolHost
      >
    >()
    expectTypeOf(MemoryRoster.layer).toEqualTypeOf<Layer.Layer<Roster, RosterMalformed, BridgeConfig>>()
    expectTypeOf(MirrorRegistry.layer).toEqualTypeOf<Layer.Layer<MirrorRegistry, never, BridgeConfig | ToolHost>>()
    expectTypeOf(CallDispatcher.layer).toEqualTypeOf<Layer.Layer<CallDispatcher, never, BridgeConfig>>()
    expectTypeOf(SessionDirectory.layer).toEqualTypeOf<Layer.Layer<SessionDirectory>>()
  })

  it("are hosts that need nothing but their way of asking", () => {
    expectTypeOf(ToolkitHost.layer).toEqualTypeOf<Layer.Layer<MirroredToolkit | ToolHost>>()
    expectTypeOf(ToolkitHost.layerNeedsApproval).toEqualTypeOf<Layer.Layer<MirroredToolkit | ToolHost>>()
    expectTypeOf(ToolkitHost.layerApproval).toEqualTypeOf<Layer.Layer<MirroredToolkit | ToolHost, never, Approval>>()
    expectTypeOf(McpHost.layer({ version: "1" })).toEqualTypeOf<Layer.Layer<McpHost | ToolHost, never, Stdio.Stdio>>()
    expectTypeOf(MemoryHost.layer()).toEqualTypeOf<Layer.Layer<MemoryHost | ToolHost>>()
  })

  it("add up, as several hosts do", () => {
    const hosts = () =>
      ToolHosts.layer(
        ToolHosts.member("mcp", McpHost.layer({ version: "1" })),
        ToolHosts.member("agent", ToolkitHost.layerApproval, { onRefusal: "skip" })
      )
    expectTypeOf(hosts).returns.toEqualTypeOf<
      Layer.Layer<McpHost | MirroredToolkit | ToolHost, never, Approval | Stdio.Stdio>
    >()
    // @ts-expect-error what is no host cannot be a member
    assert.isDefined(() => ToolHosts.layer(ToolHosts.member("no host", SessionDirectory.layer)).pipe(needsNothing))
  })

  it("take another service of the same shape in the place of each", () => {
    const whole = () =>
      Bridge.layerNoDeps.pipe(
        Layer.provide([
          MyAdmission,
          CallDispatcher.layer,
          MirrorRegistry.layer,
          SessionDirectory.layer,
          Layer.succeed(Roster, myRoster)
        ]),
        Layer.provide(MemoryHost.layer()),
        Layer.provide(BridgeConfig.layer({}))
      )
    expectTypeOf(whole).returns.toEqualTypeOf<
      Layer.Layer<BridgeServer | WebSocketListener, BridgeConfigError | ListenError | ToolRefused>
    >()
    // @ts-expect-error the bridge has no host yet
    assert.isDefined(() => needsNothing(Bridge.layerServer.pipe(Layer.provide(BridgeConfig.layer()))))
  })

  it("are complete with a host, the platform and the settings of the environment", () => {
    const program = Bridge.layerConfig.pipe(Layer.provideMerge(ToolkitHost.layer), Layer.provide(NodeServices.layer))
    expectTypeOf<Layer.Services<typeof program>>().toEqualTypeOf<never>()
  })

  it("let no write run without a grant", () => {
    expectTypeOf<ReturnType<ReadTool["call"]>>().toEqualTypeOf<Effect.Effect<unknown, CallError>>()
    expectTypeOf<ReturnType<WriteTool["call"]>>().toEqualTypeOf<Effect.Effect<unknown, CallError, WriteGrant>>()
    // @ts-expect-error a tool that may write cannot be run by itself
    assert.isDefined((tool: HostTool) => Effect.runPromise(tool.call({})))
  })
})

describe("the test kit", () => {
  it("needs a host, and gives all that the bridge does without sockets", () => {
    expectTypeOf(TestBridge.layer()).toEqualTypeOf<
      Layer.Layer<BridgeConfig | Core | Roster, BridgeConfigError | RosterMalformed, ToolHost>
    >()
    expectTypeOf(TestBridge.layerNoRoster()).toEqualTypeOf<
      Layer.Layer<BridgeConfig | Core, BridgeConfigError, Roster | ToolHost>
    >()
    expectTypeOf<Layer.Services<ReturnType<typeof TestBridge.layerMemory>>>().toEqualTypeOf<never>()
  })

  it("knows what the tools of an application need", () => {
    const tool = TestTool.read({ name: "x", run: () => MemoryHost.use(({ tools }) => tools) })
    expectTypeOf(tool).toEqualTypeOf<TestTool.TestTool<MemoryHost>>()
    const connecting = TestApplication.connect("shop", { tools: [tool] })
    expectTypeOf<Effect.Services<typeof connecting>>().toEqualTypeOf<
      BridgeServer | MemoryHost | Roster | import("effect").Scope.Scope
    >()
    expectTypeOf<Effect.Error<typeof connecting>>().toEqualTypeOf<TestApplication.TestRefused>()
  })
})

declare const needsNothing: <A, E>(layer: Layer.Layer<A, E>) => Layer.Layer<A, E>
declare const MyAdmission: Layer.Layer<Admission, never, BridgeConfig>
declare const myRoster: Roster["Service"]
