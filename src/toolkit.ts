/** Entry `effect-frontend-tools/toolkit`: the tools of running applications for a `LanguageModel` of your own. */
export { Approval, type ApprovalDecision, type ApprovalRequest } from "./layers/host/Approval.ts"
export { type CallOutcome, FailureReason, MirroredFailure } from "./layers/host/CallOutcome.ts"
export type { MirroredTool } from "./layers/host/MirroredTool.ts"
export {
  MirroredToolkit,
  type MirroredTools,
  type MirroredToolsWith,
  type ToolSelection
} from "./layers/host/MirroredToolkit.ts"
export * as ToolkitHost from "./layers/host/ToolkitHost.ts"
