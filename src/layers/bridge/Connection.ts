/**
 * One application's line to the bridge, whatever carries it.
 *
 * The WebSocket listener makes one of every socket; `makePair` makes one in memory,
 * so that the whole state machine of a session runs without sockets and under a
 * test's clock.
 */

/** What a session does with what arrives. All are called in order, and never after `onClose`. */
export interface ConnectionHandlers {
  readonly onText: (text: string) => void
  /** The protocol knows text messages only. */
  readonly onBinary: () => void
  /** More arrived than `Connection.admit` had not yet allowed. */
  readonly onTooLarge: () => void
  /** The line is gone, whoever ended it. Called exactly once. */
  readonly onClose: () => void
}

export interface Connection {
  /** Begins delivery. Called once; what arrived before waits for it. */
  readonly start: (handlers: ConnectionHandlers) => void
  /** Sends one text message. Does nothing once the line is closing. */
  readonly send: (text: string) => void
  /** Bytes that were sent and have not left yet. */
  readonly bufferedBytes: () => number
  /** The peer has proven who it is: messages up to `maxFrameBytes` are read from now on. */
  readonly admit: () => void
  /** Ends the line in order, with a close code of the WebSocket protocol. */
  readonly close: (code: number, reason: string) => void
  /** Ends the line at once. */
  readonly terminate: () => void
}

/** The close codes the bridge uses (bridge protocol, part a.3). */
export const CloseCode = {
  /** The bridge shuts down. */
  goingAway: 1001,
  unsupportedData: 1003,
  /** Authentication, a duplicate, a malformed frame, or no hello in time. */
  policyViolation: 1008,
  tooLarge: 1009
} as const

/** The application's end of a connection in memory. */
export interface MemoryPeer {
  /** Every message the bridge has sent and `take` has not removed. */
  readonly received: Array<string>
  /** Removes and returns the messages received so far. */
  readonly take: () => ReadonlyArray<string>
  readonly send: (text: string) => void
  readonly sendBinary: () => void
  readonly close: () => void
  /** How the bridge ended the line: a close code, or `terminated`. */
  readonly ended: () => number | "terminated" | undefined
  /** Pretends that the peer stopped reading with this many bytes unsent. */
  readonly stall: (bufferedBytes: number) => void
  /** Called with each message as it arrives; replaces the previous listener. */
  readonly listen: (listener: (text: string) => void) => void
}

/**
 * A connection in memory and the application's end of it. Messages arrive before
 * `send` returns.
 */
export const makePair = (): { readonly connection: Connection; readonly peer: MemoryPeer } => {
  const received: Array<string> = []
  const early: Array<(handlers: ConnectionHandlers) => void> = []
  let handlers: ConnectionHandlers | undefined
  let ended: number | "terminated" | undefined
  let open = true
  let buffered = 0
  let listener: ((text: string) => void) | undefined

  const deliver = (event: (handlers: ConnectionHandlers) => void) => {
    if (handlers === undefined) early.push(event)
    else event(handlers)
  }
  const end = (how: number | "terminated" | undefined) => {
    if (!open) return
    open = false
    ended = how
    deliver((to) => to.onClose())
  }

  return {
    connection: {
      start: (session) => {
        handlers = session
        for (const event of early.splice(0)) event(session)
      },
      send: (text) => {
        if (!open) return
        received.push(text)
        listener?.(text)
      },
      bufferedBytes: () => buffered,
      admit: () => {},
      close: (code) => end(code),
      terminate: () => end("terminated")
    },
    peer: {
      received,
      take: () => received.splice(0),
      send: (text) => {
        if (open) deliver((to) => to.onText(text))
      },
      sendBinary: () => {
        if (open) deliver((to) => to.onBinary())
      },
      close: () => end(undefined),
      ended: () => ended,
      stall: (bytes) => {
        buffered = bytes
      },
      listen: (next) => {
        listener = next
      }
    }
  }
}
