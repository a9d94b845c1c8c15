import { type FileSystem, Layer, type Path } from "effect"
import type { ToolHost, ToolRefused } from "../host/ToolHost.ts"
import * as AdminTools from "./AdminTools.ts"
import { Admission } from "./Admission.ts"
import type { BridgeConfig } from "./BridgeConfig.ts"
import { BridgeServer } from "./BridgeServer.ts"
import { CallDispatcher } from "./CallDispatcher.ts"
import { MirrorRegistry } from "./MirrorRegistry.ts"
import { Roster } from "./Roster.ts"
import type { RosterFileError, RosterMalformed } from "./RosterFile.ts"
import { SessionRunner } from "./Session.ts"
import { SessionDirectory } from "./SessionDirectory.ts"
import { type ListenError, WebSocketListener } from "./WebSocketListener.ts"

/**
 * The server without a socket: connections come from `BridgeServer.accept`. Provides
 * every core service, and needs the settings, a roster and a host.
 */
export const layerServer: Layer.Layer<
  BridgeServer | MirrorRegistry | CallDispatcher | SessionDirectory | Admission,
  never,
  BridgeConfig | Roster | ToolHost
> = BridgeServer.layer.pipe(
  Layer.provide(SessionRunner.layer),
  Layer.provideMerge(
    Layer.mergeAll(Admission.layer, CallDispatcher.layer, MirrorRegistry.layer, SessionDirectory.layer)
  )
)

/**
 * The whole bridge: everything but its settings and the host. Built once the port is
 * bound; closing its scope releases all of it.
 */
export const layer: Layer.Layer<
  BridgeServer | MirrorRegistry | CallDispatcher | SessionDirectory | Admission | Roster | WebSocketListener,
  RosterMalformed | RosterFileError | ListenError | ToolRefused,
  BridgeConfig | ToolHost | FileSystem.FileSystem | Path.Path
> = AdminTools.layer.pipe(
  Layer.provideMerge(WebSocketListener.layer),
  Layer.provideMerge(layerServer),
  Layer.provideMerge(Roster.layer)
)
