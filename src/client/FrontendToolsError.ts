import type { BridgeErrorCode } from "../domain/bridge/ErrorCode.ts"
import { describeThrown, failed, type Outcome } from "./answer.ts"

/**
 * An error with a code of the protocol. A handler throws it to tell the model more than
 * `internal`, such as `denied` when nobody is logged in; the client rejects with it.
 */
export class FrontendToolsError extends Error {
  override readonly name = "FrontendToolsError"
  /** One of the protocol's codes, or one that a newer bridge added. */
  readonly code: BridgeErrorCode | (string & {})

  constructor(code: BridgeErrorCode | (string & {}), message: string) {
    super(message)
    this.code = code
  }
}

/** How a call ends whose handler threw. Another copy's error counts, too. */
export const thrownOutcome = (thrown: unknown): Outcome =>
  thrown instanceof Error && thrown.name === "FrontendToolsError" && "code" in thrown && typeof thrown.code === "string"
    ? failed(thrown.code, thrown.message)
    : failed("internal", describeThrown(thrown))
