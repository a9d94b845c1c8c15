/**
 * Remote agent backends: run what a backend delegates, and resume it exactly once.
 *
 * @module
 */
export * from "./domain/aidream/index.ts"
export { type ActiveToolSet, ActiveTools } from "./layers/aidream/ActiveTools.ts"
export { AgentRuns, type OpenOptions, type RunInput } from "./layers/aidream/AgentRuns.ts"
export { layer, layerNoDeps } from "./layers/aidream/Aidream.ts"
export { AidreamApi, type OpenRun } from "./layers/aidream/AidreamApi.ts"
export { AidreamConfig } from "./layers/aidream/AidreamConfig.ts"
export { type ApprovalAnswer, type ApprovalAsk, type ApprovalDecision, Approvals } from "./layers/aidream/Approvals.ts"
export { CallGates, CallRefused } from "./layers/aidream/CallGates.ts"
export { CallJournal, JournalEntry } from "./layers/aidream/CallJournal.ts"
export {
  Capabilities,
  type CapabilitiesOptions,
  type CapabilityProvider,
  type ContextProvider,
  type Pin,
  type Send
} from "./layers/aidream/Capabilities.ts"
export { Continuations } from "./layers/aidream/Continuations.ts"
export { Conversations } from "./layers/aidream/Conversations.ts"
export { type Credential, Credentials } from "./layers/aidream/Credentials.ts"
export { DelegationDispatcher } from "./layers/aidream/DelegationDispatcher.ts"
export { type HostTools, hostToolSource } from "./layers/aidream/HostToolSource.ts"
export { LocalPolicy } from "./layers/aidream/LocalPolicy.ts"
export { Obligations } from "./layers/aidream/Obligations.ts"
export { ResultsFunnel } from "./layers/aidream/ResultsFunnel.ts"
export { RunFollower } from "./layers/aidream/RunFollower.ts"
export { RunRecords } from "./layers/aidream/RunRecords.ts"
export {
  InvalidArguments,
  type LibraryTool,
  makeTool,
  type PreparedCall,
  type ToolCall,
  ToolFailure,
  type ToolOptions
} from "./layers/aidream/Tool.ts"
export { ToolLibrary, ToolNameTaken, type ToolSource } from "./layers/aidream/ToolLibrary.ts"
