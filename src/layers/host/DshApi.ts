/**
 * What we use of DeepSeek Harness, as shapes of our own (bridge protocol, part d.1).
 *
 * The harness is an optional peer: a team without it must be able to compile against
 * this package. That the real types fit is held by a test.
 */
import type { JsonObject } from "../../domain/bridge/RemoteTool.ts"

/** One tool call on its way through the host. The same object reaches the gate and the tool's body. */
export interface DshExecution {
  readonly name: string
  readonly arguments: unknown
  readonly signal: AbortSignal
}

/** What a gate says of a call. */
export type DshDecision =
  | { readonly kind: "allow" }
  | { readonly kind: "deny"; readonly reason: string }
  | { readonly kind: "ask"; readonly reason?: string }

/** A tool as `ctx.tools` takes it. */
export interface DshToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
  readonly output: {
    readonly schema: JsonObject
    readonly render: (args: unknown, value: unknown) => Array<{ readonly type: "text"; readonly text: string }>
  }
  readonly execute: (args: unknown, exec: DshExecution) => Promise<unknown>
  readonly isConcurrencySafe: () => boolean
}

/** The context that the harness hands a plugin. */
export interface DshContext {
  readonly tools: {
    /** Throws what the host has against the tool. The disposer may be called twice. */
    readonly register: (definition: DshToolDefinition) => () => void
  }
  readonly on: (
    event: "tools/pre-execute",
    listener: (exec: DshExecution, next: () => Promise<DshDecision>) => Promise<DshDecision>,
    options: { readonly prepend: true }
  ) => () => void
}
