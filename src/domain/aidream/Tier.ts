/** How much a tool may do without asking (part 6.5). */
import { Schema } from "effect"

/**
 * - `read` runs.
 * - `action` asks in ask mode and runs in act mode.
 * - `privileged` always asks.
 * - `ask-user` runs: the tool itself asks the person.
 */
export const Tier = Schema.Literals(["read", "action", "privileged", "ask-user"])
export type Tier = typeof Tier.Type

/** What the person chose for a conversation. An unknown run counts as `ask`. */
export const PermissionMode = Schema.Literals(["ask", "act"])
export type PermissionMode = typeof PermissionMode.Type

/** Who a call acts for. Host trust holds for the person's own agent only. */
export const Initiator = Schema.Literals(["agent", "page", "web-app", "desktop"])
export type Initiator = typeof Initiator.Type

/** What stands between a call and its run. */
export interface ApprovalRule {
  readonly tier: Tier
  readonly mode: PermissionMode
  readonly initiator: Initiator
  /** Whether the person trusts the host of `args.url` in this conversation. */
  readonly hostTrusted: boolean
  /** The backend sent an approval record with the call (part 6.6). */
  readonly authorized: boolean
}

/** Whether a person must allow this very call first. */
export const needsApproval = (rule: ApprovalRule): boolean => {
  if (rule.authorized) return true
  switch (rule.tier) {
    case "read":
    case "ask-user":
      return false
    case "action":
      return rule.mode === "ask" && !(rule.hostTrusted && rule.initiator === "agent")
    case "privileged":
      return true
  }
}
