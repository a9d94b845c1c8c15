/** The application SDK: the Effect API, and the Promise API beside it. Runs in a browser. */

export type { ClientState, ConnectionState, ReasonCode } from "./client/ClientState.ts"
export * from "./client/compat.ts"
export { type CallInfo, ToolsRefused } from "./client/DeclaredTool.ts"
export { type ClientOptions, FrontendToolsClient, type Registration } from "./client/FrontendToolsClient.ts"
export { FrontendToolsError } from "./client/FrontendToolsError.ts"
export * from "./client/HostSchema.ts"
export { type Diagnosis, diagnose, type Platform, thisPlatform } from "./client/loopback.ts"
export * from "./client/modelContext.ts"
export {
  type CallContext,
  createFrontendToolsClient,
  type FrontendTool,
  type FrontendToolsClient as FrontendToolsClientHandle,
  type FrontendToolsClientOptions,
  type RemoteToolSpec,
  type StateListener,
  type ToolRegistration,
  type WireJsonSchema
} from "./client/promise.ts"
export * from "./client/storedKey.ts"
export * as Tool from "./client/Tool.ts"
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
