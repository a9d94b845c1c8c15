/** A whole bridge without sockets, files or real time, on a host of the test's choice. */
import { Layer, type LogLevel, References } from "effect"
import type { Admission } from "../bridge/Admission.ts"
import * as Bridge from "../bridge/Bridge.ts"
import { BridgeConfig, type BridgeConfigError, type BridgeOptionsInput } from "../bridge/BridgeConfig.ts"
import type { BridgeServer } from "../bridge/BridgeServer.ts"
import type { CallDispatcher } from "../bridge/CallDispatcher.ts"
import * as MemoryRoster from "../bridge/MemoryRoster.ts"
import type { MirrorRegistry } from "../bridge/MirrorRegistry.ts"
import type { Roster } from "../bridge/Roster.ts"
import type { RosterMalformed } from "../bridge/RosterFile.ts"
import type { SessionDirectory } from "../bridge/SessionDirectory.ts"
import { MemoryHost } from "../host/MemoryHost.ts"
import type { ToolHost } from "../host/ToolHost.ts"

export interface TestBridgeOptions extends BridgeOptionsInput {
  /** What the bridge logs. Defaults to `Warn`: an application that comes and goes is no news in a test. */
  readonly logLevel?: LogLevel.LogLevel | undefined
}

const server = (options: TestBridgeOptions = {}) =>
  Bridge.layerServer.pipe(Layer.provide(Layer.succeed(References.MinimumLogLevel, options.logLevel ?? "Warn")))

type Core = Admission | BridgeConfig | BridgeServer | CallDispatcher | MirrorRegistry | SessionDirectory

/**
 * The bridge on a roster of the test's own.
 *
 * Fails with `BridgeConfigError` when a setting is out of its range.
 */
export const layerNoRoster = (options?: TestBridgeOptions): Layer.Layer<Core, BridgeConfigError, Roster | ToolHost> =>
  server(options).pipe(Layer.provideMerge(BridgeConfig.layer(options)))

/**
 * The bridge as a program's tests want it: their own host, a roster in memory that
 * admits every `TestApplication`, and whatever clock there is, for instance TestClock.
 *
 * Fails with `BridgeConfigError` or `RosterMalformed` when the options do not hold.
 */
export const layer = (
  options?: TestBridgeOptions
): Layer.Layer<Core | Roster, BridgeConfigError | RosterMalformed, ToolHost> =>
  server(options).pipe(Layer.provideMerge(MemoryRoster.layer), Layer.provideMerge(BridgeConfig.layer(options)))

/** The same on the memory host, for tests that call the tools themselves. */
export const layerMemory = (
  options?: TestBridgeOptions
): Layer.Layer<Core | MemoryHost | Roster | ToolHost, BridgeConfigError | RosterMalformed> =>
  layer(options).pipe(Layer.provideMerge(MemoryHost.layer()))
