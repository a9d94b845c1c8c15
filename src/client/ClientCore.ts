import { Effect, type Fiber, Random, type Redacted } from "effect"
import { frameLimit } from "../domain/bridge/Frame.ts"
import { delayMillis, PATIENT_ATTEMPT } from "./backoff.ts"
import { type Calls, makeCalls } from "./Calls.ts"
import { type ClientState, type ConnectionState, initialState } from "./ClientState.ts"
import type { ToolsRefused } from "./DeclaredTool.ts"
import { type LinkEnd, makeLink } from "./Link.ts"
import { type Diagnosis, diagnose, type Platform } from "./loopback.ts"
import { makeRegistrations, type Registrations } from "./Registrations.ts"
import type { WebSocketConstructor } from "./WebSocketLike.ts"

export interface CoreOptions {
  /** Such as `ws://127.0.0.1:31870`. */
  readonly url: string
  readonly key: Redacted.Redacted<string>
  /** Absent: the platform's own. */
  readonly socket: WebSocketConstructor | undefined
  /** Whether a session that dropped is followed by another. */
  readonly reconnect: boolean
  /** Whether the first connection is tried until it succeeds. */
  readonly retryFirst: boolean
  /** Whether a key that the bridge does not know is tried again, slowly. */
  readonly authRetry: boolean
  readonly platform: Platform
}

/** What a bridge reads when it does not say: more than it takes is refused by it. */
const DEFAULT_MAX_FRAME_BYTES = 16 * 1024 * 1024

/** How long the bridge may take for its welcome. It asks an incumbent for a second. */
const HANDSHAKE_MILLIS = 10_000

/** A diagnosis looks at the network: one per so many failures. */
const DIAGNOSE_EVERY = 5

/** What only a change of the application or of its page can mend. */
const isHopeless = ({ reason }: LinkEnd) =>
  reason === "bad_url" || reason === "no_websocket" || reason === "protocol_mismatch"

/** Starts a fiber with a clock and a source of random numbers. */
export type Fork = (effect: Effect.Effect<void>) => Fiber.Fiber<void>

/**
 * The client without an API: its state, what it registers, the calls it runs, and the
 * loop that keeps it connected. The Effect and the Promise API are two faces of it.
 */
export interface ClientCore {
  readonly registrations: Registrations
  readonly calls: Calls
  readonly state: () => ClientState
  /** Hears of every state from now on. Returns what ends that. */
  readonly onState: (listener: (state: ClientState) => void) => () => void
  /** Hears of every tool that the bridge refuses. Returns what ends that. */
  readonly onRefused: (listener: (refusal: ToolsRefused) => void) => () => void
  /** Tells them of a refusal that was made here. */
  readonly refused: (refusal: ToolsRefused) => void
  /**
   * Connects, and connects again after every drop, until there is no use in it; the
   * state says why. Ends the wait before the next attempt where it is on it already.
   */
  readonly start: () => void
  /** Closes the connection for good: whoever waits for the bridge hears that. */
  readonly stop: () => void
}

export const makeCore = (options: CoreOptions, fork: Fork): ClientCore => {
  const stateListeners = makeListeners<ClientState>()
  const refusalListeners = makeListeners<ToolsRefused>()
  const registrations = makeRegistrations(refusalListeners.notify)
  const calls = makeCalls(registrations.lookup)
  let state = initialState
  let active = false
  let running: Fiber.Fiber<void> | undefined
  let sleeping: Fiber.Fiber<void> | undefined
  let stopped = false

  const setState = (status: ConnectionState, change: Partial<ClientState> = {}) => {
    const { namespace } = state
    state = { reason: undefined, message: undefined, retryInMillis: undefined, namespace, ...change, status }
    stateListeners.notify(state)
  }

  /** The loop is over: whoever hears of it may start another at once. */
  const giveUp = (status: ConnectionState, why: Diagnosis) => {
    active = false
    registrations.givenUp()
    setState(status, why)
  }

  /** Waits for the next attempt, or until `start` is called again. */
  const pause = (millis: number) =>
    Effect.callback<void>((done) => {
      const own = fork(Effect.sleep(millis))
      sleeping = own
      own.addObserver(() => done(Effect.void))
      return Effect.sync(() => own.interruptUnsafe())
    })

  /** One link, and what the client does with it. */
  const session = Effect.suspend(() => {
    let live = false
    const line = { send: (text: string) => link.send(text), maxFrameBytes: DEFAULT_MAX_FRAME_BYTES }
    const link = makeLink(options, {
      onWelcome: ({ limits, namespace }) => {
        live = true
        watch.interruptUnsafe()
        line.maxFrameBytes = frameLimit(limits) ?? DEFAULT_MAX_FRAME_BYTES
        registrations.opened(line)
        setState("connected", { namespace })
      },
      onRegistered: registrations.onRegistered,
      onUnregistered: registrations.onUnregistered,
      onCall: (call) => calls.start(call, line),
      onCancel: calls.cancel,
      onError: registrations.onError
    })
    const watch = fork(
      Effect.andThen(
        Effect.sleep(HANDSHAKE_MILLIS),
        Effect.sync(() => link.end("handshake_timeout", "the bridge took the connection and sent no welcome"))
      )
    )
    return Effect.onExit(link.run, () =>
      Effect.sync(() => {
        watch.interruptUnsafe()
        if (!live) return
        registrations.closed()
        calls.abandon()
      })
    )
  })

  const loop = Effect.gen(function* () {
    let hadSession = false
    let failures = 0
    let diagnosis: Diagnosis | undefined
    while (true) {
      const end = yield* session
      const refused = end.reason === "auth_failed" || end.reason === "protocol_mismatch"
      let why: Diagnosis = { reason: end.reason, message: end.message }
      if (end.stage === "session") {
        hadSession = true
        failures = 0
        diagnosis = undefined
      } else if (end.stage === "opening" && (end.reason === "unreachable" || end.reason === "handshake_timeout")) {
        if (diagnosis === undefined || failures % DIAGNOSE_EVERY === 0) {
          diagnosis = yield* Effect.promise(() => diagnose(options.url, options.platform))
        }
        // A browser that still asks its user holds the socket back: that is no silent bridge.
        if (end.reason === "unreachable" || diagnosis.reason === "blocked_by_permission") why = diagnosis
      }
      const again = hadSession ? options.reconnect : options.retryFirst
      if (isHopeless(end) || !again || (refused && !options.authRetry)) {
        // Who asked for one attempt gets its outcome, not a state to wait in.
        return giveUp(refused && again ? "refused" : "disconnected", why)
      }
      if (end.stage === "session") setState("disconnected", why)
      const patient = refused || end.busy === true
      const retryInMillis = delayMillis(patient ? Math.max(failures, PATIENT_ATTEMPT) : failures, yield* Random.next)
      setState(refused ? "refused" : hadSession ? "reconnecting" : "connecting", { ...why, retryInMillis })
      yield* pause(retryInMillis)
      failures++
    }
  })

  return {
    registrations,
    calls,
    state: () => state,
    onState: stateListeners.subscribe,
    onRefused: refusalListeners.subscribe,
    refused: refusalListeners.notify,
    start: () => {
      if (stopped) return
      if (active) return sleeping?.interruptUnsafe()
      active = true
      setState("connecting")
      const fiber = fork(loop)
      // It may be over by now, and so may the client, if a listener so decided.
      if (stopped) fiber.interruptUnsafe()
      else if (fiber.pollUnsafe() === undefined) running = fiber
    },
    stop: () => {
      if (stopped) return
      stopped = true
      running?.interruptUnsafe()
      registrations.stopped()
      setState("disconnected", { reason: "stopped", message: "the client was disconnected" })
    }
  }
}

/** Listeners of the application, whose faults are not the client's. */
const makeListeners = <A>() => {
  const listeners = new Set<(value: A) => void>()
  const news: Array<A> = []
  let telling = false

  const tell = (listener: (value: A) => void, value: A) => {
    try {
      listener(value)
    } catch (error) {
      // Where the platform shows errors that nobody caught; it does not end the program.
      const { reportError }: Partial<typeof globalThis> = globalThis
      reportError?.(error)
    }
  }

  return {
    subscribe: (listener: (value: A) => void) => {
      // One of its own: a function that was passed twice is called twice, and removed once.
      const own = (value: A) => listener(value)
      listeners.add(own)
      return () => {
        listeners.delete(own)
      }
    },
    notify: (value: A) => {
      news.push(value)
      // What a listener brings about waits until all have heard of what came before.
      if (telling) return
      telling = true
      for (let next = news.shift(); next !== undefined; next = news.shift()) {
        for (const listener of Array.from(listeners)) tell(listener, next)
      }
      telling = false
    }
  }
}
