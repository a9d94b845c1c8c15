import { type Config, type FileSystem, Layer, type Path } from "effect"
import type { ToolHost, ToolRefused } from "../host/ToolHost.ts"
import * as AdminTools from "./AdminTools.ts"
import { Admission } from "./Admission.ts"
import { BridgeConfig, type BridgeConfigError } from "./BridgeConfig.ts"
import { BridgeServer } from "./BridgeServer.ts"
import { CallDispatcher } from "./CallDispatcher.ts"
import { MirrorRegistry } from "./MirrorRegistry.ts"
import { Roster } from "./Roster.ts"
import type { RosterFileError, RosterMalformed } from "./RosterFile.ts"
import { SessionRunner } from "./Session.ts"
import { SessionDirectory } from "./SessionDirectory.ts"
import { type ListenError, WebSocketListener } from "./WebSocketListener.ts"

/**
 * The server out of its parts, with its door to the machine and its own tools on the
 * host. Whatever it needs can be another: provide a service of the same shape.
 *
 * Built once the port is bound. Fails with `ListenError` when it cannot be, and with
 * `ToolRefused` when the host does not take the bridge's own tools. Closing its scope
 * ends every session, then frees the port.
 */
export const layerNoDeps: Layer.Layer<
  BridgeServer | WebSocketListener,
  ListenError | ToolRefused,
  Admission | BridgeConfig | CallDispatcher | MirrorRegistry | Roster | SessionDirectory | ToolHost
> = AdminTools.layer.pipe(
  Layer.provideMerge(WebSocketListener.layer),
  Layer.provideMerge(BridgeServer.layer),
  Layer.provide(SessionRunner.layer)
)

const layerCore = Layer.mergeAll(Admission.layer, CallDispatcher.layer, MirrorRegistry.layer, SessionDirectory.layer)

/**
 * The server without a socket and without tools of its own: connections come from
 * `BridgeServer.accept`. Provides every core service, and needs the settings, a roster
 * and a host. Cannot fail.
 */
export const layerServer: Layer.Layer<
  BridgeServer | MirrorRegistry | CallDispatcher | SessionDirectory | Admission,
  never,
  BridgeConfig | Roster | ToolHost
> = BridgeServer.layer.pipe(Layer.provide(SessionRunner.layer), Layer.provideMerge(layerCore))

/** The whole bridge on a roster of the program's own; see `layer`. */
export const layerNoRoster: Layer.Layer<
  BridgeServer | MirrorRegistry | CallDispatcher | SessionDirectory | Admission | WebSocketListener,
  ListenError | ToolRefused,
  BridgeConfig | Roster | ToolHost
> = layerNoDeps.pipe(Layer.provideMerge(layerCore))

/**
 * The whole bridge: everything but its settings and the host. Built once the port is
 * bound; closing its scope releases all of it.
 *
 * Fails with `RosterMalformed` or `RosterFileError` when the roster cannot be read, with
 * `ListenError` when the port cannot be bound, and with `ToolRefused` when the host does
 * not take the bridge's own tools.
 */
export const layer: Layer.Layer<
  BridgeServer | MirrorRegistry | CallDispatcher | SessionDirectory | Admission | Roster | WebSocketListener,
  RosterMalformed | RosterFileError | ListenError | ToolRefused,
  BridgeConfig | ToolHost | FileSystem.FileSystem | Path.Path
> = layerNoRoster.pipe(Layer.provideMerge(Roster.layer))

/**
 * `layer` with the settings of the environment (`BridgeConfig.layerConfig`): needs a host
 * and the platform. Fails with `ConfigError` or `BridgeConfigError` too, when a setting
 * cannot be read or is out of its range.
 */
export const layerConfig: Layer.Layer<
  | BridgeServer
  | MirrorRegistry
  | CallDispatcher
  | SessionDirectory
  | Admission
  | Roster
  | WebSocketListener
  | BridgeConfig,
  RosterMalformed | RosterFileError | ListenError | ToolRefused | BridgeConfigError | Config.ConfigError,
  ToolHost | FileSystem.FileSystem | Path.Path
> = layer.pipe(Layer.provideMerge(BridgeConfig.layerConfig))
