import { Data } from "effect"
import type { Namespace, PublicName, RawName } from "../../domain/bridge/ToolName.ts"

/** What happens on the bridge, for whoever shows it. Holds no key, argument or result. */
export type BridgeEvent = Data.TaggedEnum<{
  SessionOpened: { readonly namespace: Namespace }
  SessionClosed: { readonly namespace: Namespace; readonly reason: string }
  ToolsRegistered: { readonly namespace: Namespace; readonly names: ReadonlyArray<PublicName> }
  ToolsUnregistered: { readonly namespace: Namespace; readonly names: ReadonlyArray<RawName> }
  HandshakeRefused: { readonly reason: string }
}>

export const BridgeEvent = Data.taggedEnum<BridgeEvent>()
