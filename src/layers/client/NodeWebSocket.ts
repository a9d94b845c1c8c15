import type { Socket } from "node:net"
import { WebSocket } from "ws"

/**
 * A WebSocket for clients in Node, to be passed as `socket`: that of the package `ws`,
 * with the frames of one turn of the event loop in one write. Under load it carries
 * about twice the calls of the platform's own; a single frame is not held up, since the
 * loop comes to it next.
 */
export class NodeWebSocket extends WebSocket {
  #line: Socket | undefined
  #corked = false

  constructor(url: string) {
    super(url, { perMessageDeflate: false })
    this.once("upgrade", ({ socket }) => {
      this.#line = socket
    })
  }

  override send(data: string): void {
    const line = this.#line
    if (line !== undefined && !this.#corked) {
      this.#corked = true
      line.cork()
      setImmediate(() => {
        this.#corked = false
        line.uncork()
      })
    }
    super.send(data)
  }
}
