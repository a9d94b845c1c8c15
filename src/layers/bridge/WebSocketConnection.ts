import type { Socket } from "node:net"
import type { WebSocket } from "ws"
import type { Connection, ConnectionHandlers } from "./Connection.ts"

/** What may still arrive while a connection that sent too much is being closed. */
const EARLY_GRACE_BYTES = 256 * 1024

/**
 * A connection over a WebSocket.
 *
 * Frames of one turn of the event loop leave in one write: the socket is corked by
 * the first and uncorked once the loop has read what was there. A single frame is
 * not held up by that, since the loop comes to it next.
 *
 * Before `admit`, no more than `maxHelloBytes` are read, whatever length a frame
 * announces, so that nobody can fill the memory without a key.
 */
export const makeWebSocketConnection = (
  webSocket: WebSocket,
  socket: Socket,
  options: {
    readonly maxHelloBytes: number
    /** The bridge has asked for the close; the peer may or may not answer. */
    readonly onClosing: () => void
  }
): Connection => {
  let corked = false
  let handlers: ConnectionHandlers | undefined
  let admitted = false
  let early = 0

  const uncork = () => {
    corked = false
    socket.uncork()
  }

  const countEarly = (chunk: Buffer) => {
    early += chunk.length
    // The hello may have been in this very chunk, and more behind it.
    if (admitted || early <= options.maxHelloBytes) return
    handlers?.onTooLarge()
    // The close is on its way; who goes on sending does not wait for it.
    if (early > options.maxHelloBytes + EARLY_GRACE_BYTES) webSocket.terminate()
  }
  socket.on("data", countEarly)

  return {
    start: (session) => {
      handlers = session
      webSocket.on("message", (data, isBinary) => {
        if (isBinary) session.onBinary()
        else session.onText(data.toString())
      })
      // What the library refuses by itself, such as a frame over the limit, it also closes.
      webSocket.on("error", () => {})
      webSocket.on("close", () => {
        socket.off("data", countEarly)
        session.onClose()
      })
    },
    send: (text) => {
      if (webSocket.readyState !== webSocket.OPEN) return
      if (!corked) {
        corked = true
        socket.cork()
        setImmediate(uncork)
      }
      webSocket.send(text)
    },
    bufferedBytes: () => webSocket.bufferedAmount,
    admit: () => {
      admitted = true
      socket.off("data", countEarly)
    },
    close: (code, reason) => {
      webSocket.close(code, reason)
      options.onClosing()
    },
    terminate: () => webSocket.terminate()
  }
}
