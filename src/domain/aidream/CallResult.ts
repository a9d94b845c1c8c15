/** Answers to delegated calls, as this client makes them (parts 5.4, 6.4, 7). */
import { isJsonObject } from "./Absent.ts"
import type { Delegation } from "./Delegation.ts"
import { closeNames } from "./ToolIdentity.ts"
import type { ClientToolResult } from "./ToolResults.ts"

/** The tool did not run, or nobody knows what it did. */
export const errorResult = (
  delegation: Delegation,
  message: string,
  options?: { readonly durationMillis?: number | undefined; readonly output?: unknown }
): ClientToolResult => ({
  call_id: delegation.callId,
  tool_name: delegation.toolName,
  output: options?.output ?? null,
  is_error: true,
  error_message: message,
  duration_ms: Math.round(options?.durationMillis ?? 0)
})

/** No tool of that name is here. */
export const unknownToolResult = (delegation: Delegation, known: Iterable<string>, hint: string): ClientToolResult => {
  const close = closeNames(delegation.toolName, known)
  const suggestion = close.length === 0 ? "" : ` Did you mean ${close.join(", ")}?`
  return errorResult(
    delegation,
    `No tool named ${delegation.toolName} is registered here.${suggestion} To list tools, ${hint}.`
  )
}

/** The process ended while the tool ran. */
export const lostResult = (delegation: Delegation): ClientToolResult =>
  errorResult(
    delegation,
    "The client restarted while this tool ran. Whether it took effect is unknown; check before calling it again."
  )

/** A reason a tool may give without words: nothing in it can leak. */
const token = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/

/**
 * The answer a tool's value makes. A value `{ ok: false, error }` is an error, and
 * only its token goes out. A value that is no JSON, or longer than `maxLength`, is one
 * too: the model must learn that the tool ran.
 */
export const valueResult = (
  delegation: Delegation,
  value: unknown,
  durationMillis: number,
  maxLength: number
): ClientToolResult => {
  if (isJsonObject(value) && value.ok === false && "error" in value) {
    const reason = typeof value.error === "string" && token.test(value.error) ? value.error : "failed"
    return errorResult(delegation, reason, { durationMillis, output: { ok: false, reason } })
  }
  const text = stringify(value)
  if (text === undefined) {
    return errorResult(delegation, "The tool ran, but its result is not JSON.", { durationMillis })
  }
  if (text.length > maxLength) {
    const message = `The tool ran, but its result is too long: ${text.length} characters, ${maxLength} are allowed.`
    return errorResult(delegation, message, { durationMillis })
  }
  return {
    call_id: delegation.callId,
    tool_name: delegation.toolName,
    output: value ?? null,
    is_error: false,
    error_message: null,
    duration_ms: Math.round(durationMillis)
  }
}

const stringify = (value: unknown): string | undefined => {
  if (value === undefined) return "null"
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
