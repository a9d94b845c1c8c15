/** Wire protocol 5 for programs that speak it themselves. Runs in a browser. */
export * from "./domain/bridge/ClientKey.ts"
export * from "./domain/bridge/ErrorCode.ts"
export * from "./domain/bridge/Frame.ts"
export * from "./domain/bridge/FrameRefused.ts"
export * from "./domain/bridge/RemoteTool.ts"
export {
  NAMESPACE_PATTERN,
  Namespace,
  PublicName,
  RawName,
  TOOL_NAME_PATTERN,
  toolLabel
} from "./domain/bridge/ToolName.ts"
