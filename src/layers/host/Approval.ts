/**
 * Who decides whether a write may run, for a program that asks people in its own way
 * (bridge protocol, part h).
 */
import { Context, type Effect } from "effect"
import type { PublicName, RawName } from "../../domain/bridge/ToolName.ts"

/** One call of a write tool. Its arguments fit the tool's schema. */
export interface ApprovalRequest {
  readonly publicName: PublicName
  /** `namespace.raw`. */
  readonly label: string
  readonly namespace: string
  readonly rawName: RawName
  readonly description: string
  /** What the tool would be called with, for rules. People are shown `question`. */
  readonly args: unknown
  /** The model's id of the call, where there is one. */
  readonly toolCallId: string | undefined
  /**
   * What to show: which application, which tool, which arguments, with every
   * character visible and no key in it.
   */
  readonly question: string
}

/** Yes to this one call, or no; a reason goes to the model. */
export type ApprovalDecision =
  | { readonly _tag: "AllowedOnce" }
  | { readonly _tag: "Refused"; readonly reason?: string | undefined }

/**
 * Decides on writes, one by one.
 *
 * The call waits while this decides. The request is interrupted when the caller gives
 * up or the tool is taken back, so that a question can be withdrawn. A defect counts
 * as a refusal.
 */
export class Approval extends Context.Service<
  Approval,
  {
    readonly request: (call: ApprovalRequest) => Effect.Effect<ApprovalDecision>
  }
>()("effect-frontend-tools/layers/host/Approval") {
  static readonly allowedOnce: ApprovalDecision = { _tag: "AllowedOnce" }

  static readonly refused = (reason?: string): ApprovalDecision => ({ _tag: "Refused", reason })
}
