import { Effect, Redacted, Result } from "effect"
import {
  type CallFrame,
  decodeServerFrame,
  encodeClientFrame,
  FEATURES,
  PROTOCOL_VERSION,
  type WelcomeFrame
} from "../domain/bridge/Frame.ts"
import type { ReasonCode } from "./ClientState.ts"
import type { AbortReason } from "./DeclaredTool.ts"
import type { WebSocketConstructor, WebSocketLike } from "./WebSocketLike.ts"

/** How a link ended. */
export interface LinkEnd {
  /** How far it had come: not open, open and not welcomed, or a session. */
  readonly stage: "opening" | "greeting" | "session"
  readonly reason: ReasonCode
  readonly message: string
  /** The code of the `error` frame that announced the end. */
  readonly code?: string | undefined
  /** The bridge asks for more time than usual. */
  readonly busy?: boolean | undefined
}

/** What happens on a live link, in the order it happens. */
export interface LinkEvents {
  readonly onWelcome: (welcome: WelcomeFrame) => void
  readonly onRegistered: (names: ReadonlyArray<string>) => void
  readonly onUnregistered: (names: ReadonlyArray<string>) => void
  readonly onCall: (call: CallFrame) => void
  readonly onCancel: (callId: string, reason: AbortReason) => void
  /** Says whether the error was about a request and the session goes on. */
  readonly onError: (code: string, message: string) => boolean
}

/** One socket, from the attempt to open it to its end. */
export interface Link {
  /** Runs the link. Interrupting it closes the socket. */
  readonly run: Effect.Effect<LinkEnd>
  /** Does nothing on a socket that is not open. */
  readonly send: (text: string) => void
  /** Ends the link from this side. */
  readonly end: (reason: ReasonCode, message: string) => void
}

const PONG = encodeClientFrame({ type: "pong" })

const SERVICE_RESTART = 1012
const TRY_AGAIN_LATER = 1013

const closeReasons: ReadonlyMap<number, ReasonCode> = new Map<number, ReasonCode>([
  [1001, "restarting"],
  [1009, "too_large"],
  [SERVICE_RESTART, "restarting"],
  [TRY_AGAIN_LATER, "restarting"]
])

const isAbortReason = (reason: string): reason is AbortReason =>
  reason === "aborted" || reason === "timeout" || reason === "revoked"

/** What an `error` frame that ends a connection means to the client. */
const reasonOf = (code: string, message: string): ReasonCode => {
  if (code === "auth_failed" || code === "duplicate_connection") return code
  // The frame has one code for all that is malformed; its text is part of the protocol (part a.3).
  return message.startsWith("protocol version ") ? "protocol_mismatch" : "invalid_message"
}

/**
 * A link to the bridge over one socket (bridge protocol, parts a and j).
 *
 * Frames are handled in the socket's callback, pings too: liveness needs no timer of
 * the page, and a browser slows those down in the background. After its end the link is
 * deaf, so that a late event of an old socket touches no new session.
 */
export const makeLink = (
  options: {
    readonly url: string
    readonly key: Redacted.Redacted<string>
    readonly socket: WebSocketConstructor | undefined
  },
  events: LinkEvents
): Link => {
  let socket: WebSocketLike | undefined
  let stage: LinkEnd["stage"] = "opening"
  let resume: ((end: LinkEnd) => void) | undefined
  let fatal: { readonly code: string; readonly message: string } | undefined

  const send = (text: string) => {
    if (resume === undefined) return
    try {
      socket?.send(text)
    } catch {
      // The socket is closing; its close event says so.
    }
  }

  const finish = (end: Omit<LinkEnd, "stage">) => {
    const settle = resume
    if (settle === undefined) return
    resume = undefined
    close()
    settle({ stage, ...end })
  }

  const close = () => {
    try {
      socket?.close()
    } catch {
      // It was never open.
    }
  }

  const refused = (code: string, message: string) => finish({ reason: reasonOf(code, message), message, code })

  const onGreeting = (text: string) => {
    const decoded = decodeServerFrame(text, "hello")
    if (Result.isFailure(decoded)) {
      const { message, path } = decoded.failure
      return finish({ reason: path[0] === "protocol" ? "protocol_mismatch" : "not_a_bridge", message })
    }
    const frame = decoded.success
    if (frame.type === "error") return refused(frame.code, frame.message)
    if (frame.type !== "welcome") return
    stage = "session"
    events.onWelcome(frame)
  }

  const onFrame = (text: string) => {
    const decoded = decodeServerFrame(text, "session")
    // A frame of a newer bridge that this client does not know.
    if (Result.isFailure(decoded)) return
    const frame = decoded.success
    switch (frame.type) {
      case "call": {
        return events.onCall(frame)
      }
      case "ping": {
        return send(PONG)
      }
      case "registered": {
        return events.onRegistered(frame.names)
      }
      case "unregistered": {
        return events.onUnregistered(frame.names)
      }
      case "cancel": {
        return events.onCancel(frame.callId, isAbortReason(frame.reason) ? frame.reason : "aborted")
      }
      case "error": {
        if (!events.onError(frame.code, frame.message)) fatal = frame
        return
      }
      case "welcome": {
        return
      }
    }
  }

  const closed = (code: number | undefined, text: string | undefined) => {
    if (fatal !== undefined) return refused(fatal.code, fatal.message)
    const known = code === undefined ? undefined : closeReasons.get(code)
    const detail = text === undefined || text === "" ? "" : `: ${text}`
    finish({
      reason: known ?? (stage === "opening" ? "unreachable" : "closed"),
      message:
        stage === "session"
          ? `the connection closed${code === undefined ? "" : ` (${code})`}${detail}`
          : "connection closed before the handshake completed",
      busy: code === SERVICE_RESTART || code === TRY_AGAIN_LATER
    })
  }

  const open = () => {
    const Socket: WebSocketConstructor | undefined = options.socket ?? globalThis.WebSocket
    if (Socket === undefined) {
      return finish({
        reason: "no_websocket",
        message: "this platform has no WebSocket; pass a constructor as `socket`"
      })
    }
    let opened: WebSocketLike
    try {
      opened = new Socket(options.url)
      socket = opened
    } catch (error) {
      const insecure = error instanceof Error && error.name === "SecurityError"
      return finish({
        reason: insecure ? "blocked_mixed_content" : "bad_url",
        message: error instanceof Error ? error.message : String(error)
      })
    }
    opened.onopen = () => {
      if (resume === undefined) return close()
      stage = "greeting"
      send(
        encodeClientFrame({
          type: "hello",
          protocol: PROTOCOL_VERSION,
          key: Redacted.value(options.key),
          features: FEATURES
        })
      )
    }
    opened.onmessage = ({ data }: { readonly data: unknown }) => {
      if (resume === undefined) return
      if (stage === "session") {
        if (typeof data === "string") onFrame(data)
      } else if (typeof data === "string") onGreeting(data)
      else finish({ reason: "not_a_bridge", message: "the first message is not text" })
    }
    opened.onclose = (event?: { readonly code?: number; readonly reason?: string }) =>
      closed(event?.code, event?.reason)
    // The handler stays on after the end: a socket of Node without one would throw its error.
    opened.onerror = () => {
      if (stage === "session") return
      finish({
        reason: stage === "opening" ? "unreachable" : "not_a_bridge",
        message: `connection to ${options.url} failed before the handshake completed`
      })
    }
  }

  return {
    send,
    end: (reason, message) => finish({ reason, message }),
    run: Effect.callback<LinkEnd>((settle) => {
      resume = (end) => settle(Effect.succeed(end))
      open()
      return Effect.sync(() => {
        resume = undefined
        close()
      })
    })
  }
}
