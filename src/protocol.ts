/** Wire protocol 5 for programs that speak it themselves. Runs in a browser. */
export * from "./domain/bridge/BridgeError.ts"
export * from "./domain/bridge/ClientKey.ts"
export * from "./domain/bridge/Frame.ts"
export * from "./domain/bridge/RemoteTool.ts"
export * from "./domain/bridge/ToolName.ts"
