import { Effect } from "effect"
import { type FrontendToolsClientOptions, makeClient } from "../../src/client/promise.ts"
import type { WebSocketLike } from "../../src/client/WebSocketLike.ts"
import { settle } from "./memorySocket.ts"

type Event = (event: never) => unknown

/** A client's socket whose other end the test plays. */
export class ScriptedSocket implements WebSocketLike {
  onopen: Event | null = null
  onclose: Event | null = null
  onerror: Event | null = null
  onmessage: Event | null = null
  /** Frames that the client sent and `take` has not removed. */
  readonly sent: Array<Record<string, unknown>> = []
  /** Whether the client closed it. */
  closed = false

  send(text: string) {
    this.sent.push(JSON.parse(text))
  }

  close() {
    this.closed = true
  }

  take() {
    return this.sent.splice(0)
  }

  #fire(handler: Event | null, event: unknown) {
    if (handler !== null) Reflect.apply(handler, this, [event])
  }

  open() {
    this.#fire(this.onopen, {})
  }

  fail() {
    this.#fire(this.onerror, {})
    this.#fire(this.onclose, { code: 1006, reason: "" })
  }

  say(frame: unknown) {
    this.#fire(this.onmessage, { data: typeof frame === "string" ? frame : JSON.stringify(frame) })
  }

  sayBinary() {
    this.#fire(this.onmessage, { data: new ArrayBuffer(1) })
  }

  drop(code = 1006, reason = "") {
    this.#fire(this.onclose, { code, reason })
  }

  /** Opens and welcomes as a bridge of ours does; the hello is taken off the record. */
  welcome(extra: object = { features: ["cancel"], limits: { maxFrameBytes: 100_000 } }) {
    this.open()
    this.take()
    this.say({ type: "welcome", protocol: 5, server: "frontend-tools-bridge", namespace: "demo", ...extra })
  }

  /** Refuses as a bridge does: an error frame and a close. */
  refuse(code: string, message: string) {
    this.open()
    this.say({ type: "error", code, message })
    this.drop(1008, code)
  }

  /** Says yes to the registration that the client asked for, and gives its raw names. */
  accept(): ReadonlyArray<string> {
    const [frame] = this.take()
    const tools = Array.isArray(frame?.tools) ? frame.tools : []
    const names = tools.map(({ name }) => String(name))
    this.say({ type: "registered", names: names.map((name) => `demo__${name}`) })
    return names
  }
}

/** A constructor of such sockets, and those it made. */
export const scriptedSockets = () => {
  const opened: Array<ScriptedSocket> = []
  class Socket extends ScriptedSocket {
    constructor(_url: string) {
      super()
      opened.push(this)
    }
  }
  return {
    Socket,
    opened,
    latest: () => {
      const socket = opened.at(-1)
      if (socket === undefined) throw new Error("no socket was opened")
      return socket
    }
  }
}

/** A client of the Promise API on the test's clock, over scripted sockets. */
export const scriptedClient = Effect.fnUntraced(function* (options: Partial<FrontendToolsClientOptions> = {}) {
  const sockets = scriptedSockets()
  const client = makeClient(
    { url: "ws://127.0.0.1:31870", key: "the-key", socket: sockets.Socket, platform: {}, ...options },
    Effect.runForkWith(yield* Effect.context())
  )
  const states: Array<string> = []
  client.onStateChange((state, { reason }) => states.push(reason === undefined ? state : `${state}: ${reason}`))
  yield* Effect.addFinalizer(() => Effect.sync(client.disconnect))
  return { client, states, ...sockets }
})

/** Such a client, connected. */
export const connectedClient = Effect.fnUntraced(function* (options: Partial<FrontendToolsClientOptions> = {}) {
  const scripted = yield* scriptedClient(options)
  const connected = scripted.client.connect()
  scripted.latest().welcome()
  yield* Effect.promise(() => connected)
  return scripted
})

/** The promise; it may reject before anybody looks. */
export const quiet = <A>(promise: Promise<A>): Promise<A> => {
  promise.catch(() => {})
  return promise
}

/** What becomes of a promise: its value, or the error it rejects with. Unsettled ones die. */
export const outcome = <A>(promise: Promise<A>) =>
  Effect.gen(function* () {
    let settled: unknown = "unsettled"
    promise.then(
      (value) => {
        settled = value
      },
      (error) => {
        settled = error instanceof Error && "code" in error ? `${error.code}: ${error.message}` : error
      }
    )
    yield* settle
    return settled
  })
