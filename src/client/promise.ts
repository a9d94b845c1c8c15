/// <reference lib="esnext.disposable" preserve="true" />
import { Effect, Redacted, Result } from "effect"
import { type Fork, makeCore } from "./ClientCore.ts"
import type { ClientState, ConnectionState } from "./ClientState.ts"
import {
  type AbortReason,
  type CallInfo,
  checkTool,
  type DeclaredTool,
  type RunningCall,
  type ToolsRefused,
  type WireTool
} from "./DeclaredTool.ts"
import { FrontendToolsError, thrownOutcome } from "./FrontendToolsError.ts"
import { type Platform, thisPlatform } from "./loopback.ts"
import type { BatchListener } from "./Registrations.ts"
import type { WebSocketConstructor } from "./WebSocketLike.ts"

/** A JSON Schema as it goes on the wire. */
export type WireJsonSchema = Readonly<Record<string, unknown>>

/** A tool as the bridge gets it. */
export interface RemoteToolSpec {
  /** 1 to 64 characters of `[A-Za-z0-9_-]`. */
  readonly name: string
  /** For the model: what the tool does, and when to use it. */
  readonly description: string
  /** JSON Schema of the arguments, with an object at its root. */
  readonly parametersSchema: WireJsonSchema
  /** JSON Schema of the result; absent means any JSON value. */
  readonly outputSchema?: WireJsonSchema | undefined
  /** Whether it changes nothing. Every call of any other tool needs a person's approval. */
  readonly readOnly?: boolean | undefined
}

/** What a handler may know about the call it answers. */
export interface CallContext extends CallInfo {
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** A tool with what it does. */
export interface FrontendTool extends RemoteToolSpec {
  /** Answers a call with a JSON value. The arguments are what the model gave: check them. */
  execute(args: unknown, call: CallContext): unknown
}

export interface FrontendToolsClientOptions {
  /** The bridge's address, such as `ws://127.0.0.1:31870`. */
  readonly url: string
  /** The application's key; see `generateClientKey`. */
  readonly key: string
  /** Whether to connect again after a drop, for ever. Default: true. */
  readonly reconnect?: boolean | undefined
  /** Whether to try the first connection until it succeeds, too. Default: false. */
  readonly retryFirstConnect?: boolean | undefined
  /** Whether to try a key again, slowly, that the bridge does not know any more. Default: true. */
  readonly authRetry?: boolean | undefined
  /** A `WebSocket` constructor. Default: the platform's. */
  readonly socket?: WebSocketConstructor | undefined
  /** Hears of every tool that is refused, also of one that an earlier session had. */
  readonly onRefused?: ((error: FrontendToolsError, names: ReadonlyArray<string>) => void) | undefined
  /** What a failed connection is explained with. Default: the platform's own. */
  readonly platform?: Platform | undefined
}

/** Hears of a state, and why it is so. */
export type StateListener = (state: ConnectionState, detail: ClientState) => void

/** One registered tool. */
export interface ToolRegistration {
  /** Its public name, once the bridge has it. Rejects when the bridge refuses it or the connection ends first. */
  readonly registered: Promise<string>
  /** Takes the tool back, unless it has been replaced since. */
  readonly unregister: () => void
  readonly [Symbol.dispose]: () => void
}

export interface FrontendToolsClient {
  /**
   * Connects, and resolves when welcomed. Rejects when the client stops trying; until then
   * the state says what is in the way. On a live client it does nothing; during a wait it
   * tries at once.
   */
  connect(): Promise<void>
  /** Ends the client for good. */
  disconnect(): void
  [Symbol.dispose](): void
  /** Ends the wait before the next attempt; starts again where the client has given up. */
  retryNow(): void
  /**
   * Registers a batch, in this session and every later one, and resolves with its public
   * names. A name that is registered already is replaced. Without a session it waits for
   * one. Rejects with code and message when the bridge refuses the batch, which is then
   * forgotten as a whole.
   */
  registerTools(tools: ReadonlyArray<FrontendTool>): Promise<Array<string>>
  /** Takes tools back and resolves with the raw names of those that were registered, once the bridge is without them. */
  unregisterTools(names: ReadonlyArray<string>): Promise<Array<string>>
  /** Registers one tool, and gives what takes it back. */
  registerTool(tool: FrontendTool): ToolRegistration
  readonly state: ConnectionState
  /** The state with its reason. */
  readonly detail: ClientState
  /** What the bridge calls this application; undefined before the first welcome. */
  readonly namespace: string | undefined
  /** Why the client is not connected; undefined while it is. */
  readonly lastError: FrontendToolsError | undefined
  /** Hears of every state from now on. Returns what ends that. */
  onStateChange(listener: StateListener): () => void
}

const aborted: Readonly<Record<AbortReason, string>> = {
  aborted: "the caller gave up",
  timeout: "the call ran out of time",
  revoked: "the call was revoked",
  disconnected: "the connection to the bridge ended"
}

/** One call: what its handler gets, and what ends it. The signal is made when it is asked for: most never are. */
class Call implements CallContext, RunningCall {
  readonly callId: string
  readonly name: string
  #controller: AbortController | undefined
  #reason: DOMException | undefined

  constructor({ callId, name }: CallInfo) {
    this.callId = callId
    this.name = name
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  abort(why: AbortReason): void {
    this.#reason = new DOMException(aborted[why], why === "timeout" ? "TimeoutError" : "AbortError")
    this.#controller?.abort(this.#reason)
  }
}

const declared = (tool: FrontendTool, wire: WireTool): DeclaredTool => ({
  ...wire,
  start: (args, info, done) => {
    const call = new Call(info)
    const fail = (thrown: unknown) => done(thrownOutcome(thrown))
    try {
      Promise.resolve(tool.execute(args, call)).then((result) => done({ ok: true, result }), fail)
    } catch (thrown) {
      fail(thrown)
    }
    return call
  }
})

const toError = ({ code, message }: ToolsRefused) => new FrontendToolsError(code, message)

/** Why a client is not connected, as an error. */
const stateError = ({ message, reason }: ClientState, url: string): FrontendToolsError | undefined => {
  switch (reason) {
    case undefined:
      return undefined
    case "auth_failed":
    case "duplicate_connection":
      return new FrontendToolsError(reason, message ?? reason)
    case "not_started":
    case "stopped":
    case "closed":
    case "restarting":
      return new FrontendToolsError("disconnected", message ?? reason)
    case "protocol_mismatch":
    case "invalid_message":
      return new FrontendToolsError("invalid_message", message ?? reason)
    default:
      return new FrontendToolsError(
        "invalid_message",
        `connection to ${url} failed before the handshake completed: ${message}`
      )
  }
}

/**
 * A client of the bridge for applications without Effect (bridge protocol, part j). It
 * connects when `connect` is called, and its tools come back in every session.
 */
export const createFrontendToolsClient = (options: FrontendToolsClientOptions): FrontendToolsClient =>
  makeClient(options, Effect.runFork)

/**
 * A client whose clock is that of the fibers it starts.
 *
 * @internal
 */
export const makeClient = (options: FrontendToolsClientOptions, fork: Fork): FrontendToolsClient => {
  const core = makeCore(
    {
      url: options.url,
      key: Redacted.make(options.key),
      socket: options.socket,
      reconnect: options.reconnect ?? true,
      retryFirst: options.retryFirstConnect ?? false,
      authRetry: options.authRetry ?? true,
      platform: options.platform ?? thisPlatform()
    },
    fork
  )
  const { registrations } = core
  const owner = {}

  core.onRefused((refusal) => options.onRefused?.(toError(refusal), refusal.names))

  const checkOpen = () => {
    if (core.state().reason === "stopped") {
      throw new FrontendToolsError("disconnected", "client was disconnected; create a new one to reconnect")
    }
  }

  /** Resolves at the next welcome and rejects when the client stops trying. */
  const attempt = () =>
    new Promise<void>((resolve, reject) => {
      const ignore = core.onState((state) => {
        const { retryInMillis, status } = state
        if (status === "connecting" || status === "reconnecting" || retryInMillis !== undefined) return
        ignore()
        if (status === "connected") resolve()
        else reject(stateError(state, options.url))
      })
      core.start()
    })

  const accepted = <A>(result: Result.Result<A, ToolsRefused>): A =>
    Result.getOrThrowWith(result, (refusal) => {
      core.refused(refusal)
      return toError(refusal)
    })

  const declare = (tools: ReadonlyArray<FrontendTool>, listener: BatchListener) => {
    checkOpen()
    const batch = tools.map((tool) => declared(tool, accepted(checkTool(tool))))
    return accepted(registrations.declare(batch, owner, listener))
  }

  const listener = (
    resolve: (names: ReadonlyArray<string>) => void,
    reject: (error: FrontendToolsError) => void
  ): BatchListener => ({
    registered: resolve,
    refused: (refusal) => reject(toError(refusal)),
    dropped: (why) =>
      reject(
        new FrontendToolsError(
          "disconnected",
          why === "cut" ? "connection closed before registration was confirmed" : "client is not connected"
        )
      )
  })

  return {
    connect: async () => {
      checkOpen()
      if (core.state().status !== "connected") await attempt()
    },
    disconnect: core.stop,
    [Symbol.dispose]: core.stop,
    retryNow: core.start,
    registerTools: (tools) =>
      new Promise((resolve, reject) => {
        declare(
          tools,
          listener((names) => resolve(Array.from(names)), reject)
        )
      }),
    unregisterTools: (names) =>
      new Promise((resolve) => {
        checkOpen()
        registrations.remove(names, (removed) => resolve(Array.from(removed)))
      }),
    registerTool: (tool) => {
      let unregister = () => {}
      const registered = new Promise<string>((resolve, reject) => {
        unregister = declare(
          [tool],
          listener(([name]) => resolve(String(name)), reject)
        )
      })
      // Whoever does not look at it is told by `onRefused`.
      registered.catch(() => {})
      return { registered, unregister: () => unregister(), [Symbol.dispose]: () => unregister() }
    },
    get state() {
      return core.state().status
    },
    get detail() {
      return core.state()
    },
    get namespace() {
      return core.state().namespace
    },
    get lastError() {
      return stateError(core.state(), options.url)
    },
    onStateChange: (listen) => core.onState((state) => listen(state.status, state))
  }
}
