/**
 * The backend half of the outbound contract: a model on your server, tools in your
 * users' applications.
 *
 * @module
 */
export { type Agent, Agents } from "./layers/backend/Agents.ts"
export { Authentication, type Credentials, type Identity } from "./layers/backend/Authentication.ts"
export { layer } from "./layers/backend/Backend.ts"
export { BackendConfig } from "./layers/backend/BackendConfig.ts"
export {
  browserDom,
  Capabilities,
  type Capability,
  desktopNative,
  LOAD_CHROME_TOOLS,
  type ResolvedClient
} from "./layers/backend/Capabilities.ts"
export { CurrentRun } from "./layers/backend/CurrentRun.ts"
export { LoadedTools, LoadFailure } from "./layers/backend/Discovery.ts"
export { CHROME_EXTENSION, MATRX_LOCAL, MATRX_USER } from "./layers/backend/Executor.ts"
export {
  type ConversationFacts,
  type FoundTurn,
  Ledger,
  LedgerFailure,
  type NewCall,
  type NewTurn,
  type RunKey,
  RunLost,
  type Step,
  type StoredCall,
  type StoredMessage,
  type SweepReport,
  type Transcript,
  type TurnLimits,
  TurnStatus
} from "./layers/backend/Ledger.ts"
export * as LoopbackServer from "./layers/backend/LoopbackServer.ts"
export { type ChosenModel, Models } from "./layers/backend/Models.ts"
export { Problem, Refusal } from "./layers/backend/Refusal.ts"
export * as ScriptedModel from "./layers/backend/ScriptedModel.ts"
export { type ServerTool, ServerTools, type ToolOutcome } from "./layers/backend/ServerTools.ts"
export * as SqlLedger from "./layers/backend/SqlLedger.ts"
export * as SqliteClient from "./layers/backend/sql/SqliteClient.ts"
export { CatalogTool, ToolCatalog } from "./layers/backend/ToolCatalog.ts"
export type { ToolChange, ToolChanges } from "./layers/backend/ToolChanges.ts"
export { type ActiveTool, mergeTools, type ToolRoute, type ToolSet } from "./layers/backend/ToolMerge.ts"
export { type OpenedRun, Turns } from "./layers/backend/Turns.ts"
