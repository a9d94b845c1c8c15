/** The codes of the bridge protocol (part a.2). */
import { Schema } from "effect"

/** Codes an `error` frame carries. */
export const ServerErrorCode = Schema.Literals([
  "auth_failed",
  "duplicate_connection",
  "invalid_message",
  "invalid_tool",
  "too_many_tools"
])
export type ServerErrorCode = typeof ServerErrorCode.Type

/** Codes a failed `callResult` carries. */
export const CallErrorCode = Schema.Literals(["unknown_tool", "disconnected", "denied", "invalid_args", "internal"])
export type CallErrorCode = typeof CallErrorCode.Type

export const BridgeErrorCode = Schema.Literals([...ServerErrorCode.literals, ...CallErrorCode.literals])
export type BridgeErrorCode = typeof BridgeErrorCode.Type
