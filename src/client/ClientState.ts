/**
 * Where the client is with its bridge.
 *
 * - `disconnected`: no connection and none under way.
 * - `connecting`: on the way to the first session.
 * - `connected`: welcomed; tools can be called.
 * - `reconnecting`: there was a session, and the client is on the way to the next one.
 * - `refused`: the bridge does not want this client. Only a person or a new version
 *   changes that, so it is retried slowly or not at all.
 */
export type ConnectionState = "disconnected" | "connecting" | "connected" | "reconnecting" | "refused"

/** Why the client is not connected. */
export type ReasonCode =
  /** The client has not been asked to connect yet. */
  | "not_started"
  /** The application ended the client. */
  | "stopped"
  /** No bridge knows the key: a person has to register it. */
  | "auth_failed"
  /** Another connection holds the namespace, such as a second tab. */
  | "duplicate_connection"
  /** The bridge speaks another version of the protocol. */
  | "protocol_mismatch"
  /** The bridge objected to something this client sent. */
  | "invalid_message"
  /** Nothing listens at the address: the bridge does not run, or on another port. */
  | "unreachable"
  /** Something else than a bridge answers at the address, or it refuses this origin. */
  | "not_a_bridge"
  /** The bridge accepted the connection and never welcomed the client. */
  | "handshake_timeout"
  /** The page is secure and the browser forbids it an insecure socket. */
  | "blocked_mixed_content"
  /** The browser's permission for this machine's own network is not granted. */
  | "blocked_by_permission"
  /** A policy of the page or of the frame around it forbids the connection. */
  | "blocked_by_policy"
  /** The address is no WebSocket URL. */
  | "bad_url"
  /** The platform has no WebSocket, and none was given. */
  | "no_websocket"
  /** The connection dropped. */
  | "closed"
  /** The bridge said that it goes away or starts again. */
  | "restarting"
  /** The bridge dropped the connection because of a frame that was too large. */
  | "too_large"

/** One state of a client. What is undefined does not apply. */
export interface ClientState {
  readonly status: ConnectionState
  /** Why it is not connected. */
  readonly reason: ReasonCode | undefined
  /** The reason for a person to read, with the way out where there is one. */
  readonly message: string | undefined
  /** What the bridge calls this application; known from the first welcome on. */
  readonly namespace: string | undefined
  /** Milliseconds from this state to the next attempt. */
  readonly retryInMillis: number | undefined
}

export const initialState: ClientState = {
  status: "disconnected",
  reason: "not_started",
  message: "the client has not been asked to connect yet",
  namespace: undefined,
  retryInMillis: undefined
}
