import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { WebSocketLike } from "../../src/client/WebSocketLike.ts"
import { BridgeServer, makePair } from "../../src/index.ts"

type Closed = { readonly code: number; readonly reason: string }

/** Sockets in memory to the bridge of the context, with a switch that takes it off the network. */
export const memorySockets = Effect.gen(function* () {
  const server = yield* BridgeServer
  const runSync = Effect.runSyncWith(yield* Effect.context())
  const opened: Array<MemorySocket> = []
  const network = { up: true }

  class MemorySocket implements WebSocketLike {
    onopen: (() => void) | null = null
    onclose: ((event: Closed) => void) | null = null
    onerror: (() => void) | null = null
    onmessage: ((event: { readonly data: unknown }) => void) | null = null
    /** Frames from the client. */
    readonly sent: Array<Record<string, unknown>> = []
    private open = false
    private readonly pair = makePair()

    readonly url: string

    constructor(url: string) {
      this.url = url
      opened.push(this)
      queueMicrotask(() => this.begin())
    }

    private begin() {
      if (!network.up) {
        this.onerror?.()
        this.finish(1006, "")
        return
      }
      const { connection, peer } = this.pair
      peer.listen((data) => queueMicrotask(() => this.onmessage?.({ data })))
      runSync(
        server.accept({
          ...connection,
          close: (code, reason) => {
            connection.close(code, reason)
            queueMicrotask(() => this.finish(code, reason))
          },
          terminate: () => {
            connection.terminate()
            queueMicrotask(() => this.finish(1006, ""))
          }
        })
      )
      this.open = true
      this.onopen?.()
    }

    send(text: string) {
      if (!this.open) return
      this.sent.push(JSON.parse(text))
      this.pair.peer.send(text)
    }

    /** A frame that the bridge has not sent. */
    receive(frame: unknown) {
      this.onmessage?.({ data: typeof frame === "string" ? frame : JSON.stringify(frame) })
    }

    close() {
      this.drop(1005)
    }

    /** Cuts the connection for both sides. */
    drop(code = 1006) {
      this.pair.peer.close()
      queueMicrotask(() => this.finish(code, ""))
    }

    private finish(code: number, reason: string) {
      this.open = false
      this.onclose?.({ code, reason })
    }
  }

  return {
    Socket: MemorySocket,
    opened,
    network,
    /** The socket of the latest attempt. */
    latest: () => {
      const socket = opened.at(-1)
      if (socket === undefined) throw new Error("no socket was opened")
      return socket
    }
  }
})

/** Lets what is scheduled happen, without time passing. */
export const settle = Effect.gen(function* () {
  for (let i = 0; i < 20; i++) {
    yield* Effect.promise(() => Promise.resolve())
    yield* TestClock.adjust(0)
  }
})
