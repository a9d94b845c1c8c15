/** The application SDK without Effect in its types: what the published client exports, and more. Runs in a browser. */

export type { ClientState, ConnectionState, ReasonCode } from "./client/ClientState.ts"
export * from "./client/compat.ts"
export { FrontendToolsError } from "./client/FrontendToolsError.ts"
export type { Platform } from "./client/loopback.ts"
export * from "./client/modelContext.ts"
export * from "./client/promise.ts"
export * from "./client/storedKey.ts"
export type { WebSocketConstructor, WebSocketLike } from "./client/WebSocketLike.ts"
export { buildClientKeyClipboardText, CLIENT_KEY_PATTERN, generateClientKey } from "./domain/bridge/ClientKey.ts"
export type { BridgeErrorCode } from "./domain/bridge/ErrorCode.ts"
export {
  type ClientFrame as ClientMessage,
  PROTOCOL_VERSION,
  SERVER_ID,
  type ServerFrame as ServerMessage
} from "./domain/bridge/Frame.ts"
export { NAMESPACE_PATTERN, TOOL_NAME_PATTERN } from "./domain/bridge/ToolName.ts"
