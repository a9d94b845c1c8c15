/**
 * The parts that the published client exports beside `createFrontendToolsClient`
 * (bridge protocol, part j): a bare connection, a table of tools, and the codec as
 * functions that throw.
 */
import { Effect, type Fiber, Redacted, Result } from "effect"
import {
  type ClientFrame,
  decodeClientFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeServerFrame,
  type Phase,
  type ServerFrame
} from "../domain/bridge/Frame.ts"
import type { FrameRefused } from "../domain/bridge/FrameRefused.ts"
import { encodeAnswer, failed, type Outcome } from "./answer.ts"
import type { ConnectionState } from "./ClientState.ts"
import { checkTool } from "./DeclaredTool.ts"
import { FrontendToolsError, thrownOutcome } from "./FrontendToolsError.ts"
import { type Link, type LinkEnd, makeLink } from "./Link.ts"
import type { FrontendTool, RemoteToolSpec } from "./promise.ts"
import type { WebSocketConstructor } from "./WebSocketLike.ts"

const toError = ({ code, message }: FrameRefused) => new FrontendToolsError(code, message)

/** Reads a frame of an application. Throws `FrontendToolsError`. */
export const parseClientMessage = (raw: string, phase: Phase): ClientFrame =>
  Result.getOrThrowWith(decodeClientFrame(raw, phase), toError)

/** Reads a frame of a bridge, in either phase. Throws `FrontendToolsError`. */
export const parseServerMessage = (raw: string): ServerFrame => {
  const greeting = decodeServerFrame(raw, "hello")
  if (Result.isSuccess(greeting)) return greeting.success
  const later = decodeServerFrame(raw, "session")
  if (Result.isSuccess(later)) return later.success
  // A bad welcome is bad as a welcome, not because it comes late.
  throw toError(greeting.failure.path[0] === "type" ? later.failure : greeting.failure)
}

export const encodeClientMessage = encodeClientFrame
export const encodeServerMessage = encodeServerFrame

/** How a call ended. */
export type DispatchOutcome =
  | { readonly ok: true; readonly result?: unknown }
  | { readonly ok: false; readonly error: { readonly code: string; readonly message: string } }

const dispatched = (outcome: Outcome): DispatchOutcome =>
  outcome.ok ? outcome : { ok: false, error: { code: outcome.code, message: outcome.message } }

/** A table of tools that answers calls by raw name. */
export class ToolExecutor {
  readonly #tools = new Map<string, FrontendTool>()

  /** Adds or replaces a tool. Throws `invalid_tool`. */
  register(tool: FrontendTool): void {
    Result.getOrThrowWith(checkTool(tool), ({ code, message }) => new FrontendToolsError(code, message))
    this.#tools.set(tool.name, tool)
  }

  unregister(name: string): void {
    this.#tools.delete(name)
  }

  /** The tools as they go on the wire, in the order they came. */
  specs(): Array<RemoteToolSpec> {
    return Array.from(this.#tools.values(), ({ execute: _, ...spec }) => spec)
  }

  /** Runs a tool. Never rejects. */
  async dispatch(name: string, args: unknown): Promise<DispatchOutcome> {
    const tool = this.#tools.get(name)
    if (tool === undefined) {
      return dispatched(failed("unknown_tool", `no frontend tool named "${name}" is registered`))
    }
    try {
      const { signal } = new AbortController()
      return { ok: true, result: await tool.execute(args, { callId: "", name, signal }) }
    } catch (error) {
      return dispatched(thrownOutcome(error))
    }
  }
}

export interface ConnectionOptions {
  readonly url: string
  readonly key: string
  readonly socket?: WebSocketConstructor | undefined
}

export interface ConnectionHandlers {
  onConnected?: (namespace: string) => void
  /** With the error frame that announced the end, if one did. */
  onDisconnected?: (
    fatal: { readonly type: "error"; readonly code: string; readonly message: string } | undefined
  ) => void
  onRegistered?: (message: { readonly type: "registered"; readonly names: ReadonlyArray<string> }) => void
  onUnregistered?: (message: { readonly type: "unregistered"; readonly names: ReadonlyArray<string> }) => void
  onCall?: (name: string, args: unknown) => Promise<DispatchOutcome>
}

/** One connection, without tools of its own and without a second attempt. */
export class BridgeConnection {
  readonly #options: ConnectionOptions
  readonly #handlers: ConnectionHandlers
  #state: ConnectionState = "disconnected"
  #namespace: string | undefined
  #link: Link | undefined
  #fiber: Fiber.Fiber<LinkEnd> | undefined

  constructor(options: ConnectionOptions, handlers: ConnectionHandlers) {
    this.#options = options
    this.#handlers = handlers
  }

  get currentState(): ConnectionState {
    return this.#state
  }

  get namespace(): string | undefined {
    return this.#namespace
  }

  /** Opens the connection and resolves when welcomed. */
  connect(): Promise<void> {
    if (this.#state !== "disconnected") {
      return Promise.reject(
        new FrontendToolsError("invalid_message", `connect() requires a disconnected client (state: ${this.#state})`)
      )
    }
    this.#state = "connecting"
    const { key, socket, url } = this.#options
    return new Promise((resolve, reject) => {
      const link = makeLink(
        { url, key: Redacted.make(key), socket },
        {
          onWelcome: ({ namespace }) => {
            this.#state = "connected"
            this.#namespace = namespace
            this.#handlers.onConnected?.(namespace)
            resolve()
          },
          onRegistered: (names) => this.#handlers.onRegistered?.({ type: "registered", names }),
          onUnregistered: (names) => this.#handlers.onUnregistered?.({ type: "unregistered", names }),
          onCall: async ({ args, callId, name }) => {
            const answer = (outcome: Outcome) => link.send(encodeAnswer(callId, outcome, Number.POSITIVE_INFINITY))
            try {
              const outcome = await this.#handlers.onCall?.(name, args)
              if (outcome === undefined) return
              answer(
                outcome.ok ? { ok: true, result: outcome.result } : failed(outcome.error.code, outcome.error.message)
              )
            } catch (error) {
              answer(thrownOutcome(error))
            }
          },
          onCancel: () => {},
          onError: () => false
        }
      )
      this.#link = link
      this.#fiber = Effect.runFork(link.run)
      this.#fiber.addObserver((exit) => {
        const was = this.#state
        this.#state = "disconnected"
        const end = exit._tag === "Success" ? exit.value : undefined
        const code = end?.code
        if (was === "connected") {
          this.#handlers.onDisconnected?.(
            code === undefined || end === undefined ? undefined : { type: "error", code, message: end.message }
          )
        }
        reject(
          new FrontendToolsError(
            code ?? "invalid_message",
            end?.message ?? "connection closed before the handshake completed"
          )
        )
      })
    })
  }

  registerTools(tools: ReadonlyArray<RemoteToolSpec>): void {
    this.#send(JSON.stringify({ type: "register", tools }))
  }

  unregisterTools(names: ReadonlyArray<string>): void {
    this.#send(JSON.stringify({ type: "unregister", names }))
  }

  disconnect(): void {
    this.#fiber?.interruptUnsafe()
  }

  #send(text: string): void {
    if (this.#state !== "connected") throw new FrontendToolsError("disconnected", "client is not connected")
    this.#link?.send(text)
  }
}
