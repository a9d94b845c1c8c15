import { Effect, type Fiber, Random, type Redacted } from "effect"
import { frameLimit } from "../domain/bridge/Frame.ts"
import { delayMillis, PATIENT_ATTEMPT } from "./backoff.ts"
import { type Calls, makeCalls } from "./Calls.ts"
import { type ClientState, type ConnectionState, initialState } from "./ClientState.ts"
import type { ToolsRefused } from "./DeclaredTool.ts"
import { type LinkEnd, makeLink } from "./Link.ts"
import { diagnose, type Platform } from "./loopback.ts"
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
  /**
   * Connects, and connects again after every drop, until there is no use in it; the
   * state says why. Interrupting it closes the connection.
   */
  readonly run: Effect.Effect<void>
  /** Ends the wait before the next attempt. */
  readonly wake: () => void
  /** The client is over: whoever waits for the bridge hears that. */
  readonly stopped: () => void
}

export const makeCore = (options: CoreOptions): ClientCore => {
  const stateListeners = makeListeners<ClientState>()
  const refusalListeners = makeListeners<ToolsRefused>()
  const registrations = makeRegistrations(refusalListeners.notify)
  const calls = makeCalls(registrations.lookup)
  let state = initialState
  let sleeping: Fiber.Fiber<void> | undefined

  const setState = (status: ConnectionState, change: Partial<ClientState> = {}) => {
    const { namespace } = state
    state = { reason: undefined, message: undefined, retryInMillis: undefined, namespace, ...change, status }
    stateListeners.notify(state)
  }

  /** Waits for the next attempt, or until `wake`. */
  const pause = (fork: Fork, millis: number) =>
    Effect.callback<void>((done) => {
      const own = fork(Effect.sleep(millis))
      sleeping = own
      own.addObserver(() => done(Effect.void))
      return Effect.sync(() => own.interruptUnsafe())
    })

  /** One link, and what the client does with it. */
  const session = (fork: Fork) =>
    Effect.suspend(() => {
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

  /** The end of a link in words, with a diagnosis where the socket did not even open. */
  const explain = ({ message, reason, stage }: LinkEnd, failures: number) => {
    if (stage !== "opening" || reason !== "unreachable") return Effect.succeed({ reason, message })
    return failures % DIAGNOSE_EVERY === 0
      ? Effect.promise(() => diagnose(options.url, options.platform))
      : Effect.succeed({ reason: state.reason, message: state.message })
  }

  const loop = Effect.fnUntraced(function* (fork: Fork) {
    let hadSession = false
    let failures = 0
    setState("connecting")
    while (true) {
      const end = yield* session(fork)
      const refused = end.reason === "auth_failed" || end.reason === "protocol_mismatch"
      if (end.stage === "session") {
        hadSession = true
        failures = 0
        setState("disconnected", { reason: end.reason, message: end.message })
      }
      const { message, reason } = yield* explain(end, failures)
      const why = { message, reason }
      if (
        isHopeless(end) ||
        !(hadSession ? options.reconnect : options.retryFirst) ||
        (refused && !options.authRetry)
      ) {
        // What ended a session has been told already.
        if (refused && (hadSession || options.retryFirst)) setState("refused", why)
        else if (end.stage !== "session") setState("disconnected", why)
        return registrations.givenUp()
      }
      const patient = refused || end.busy === true
      const retryInMillis = delayMillis(patient ? Math.max(failures, PATIENT_ATTEMPT) : failures, yield* Random.next)
      setState(refused ? "refused" : hadSession ? "reconnecting" : "connecting", { ...why, retryInMillis })
      yield* pause(fork, retryInMillis)
      failures++
    }
  })

  return {
    registrations,
    calls,
    state: () => state,
    onState: stateListeners.subscribe,
    onRefused: refusalListeners.subscribe,
    run: Effect.withFiber((fiber) => loop(Effect.runForkWith(fiber.context))),
    wake: () => sleeping?.interruptUnsafe(),
    stopped: () => {
      setState("disconnected", { reason: "stopped", message: "the client was disconnected" })
      registrations.givenUp()
    }
  }
}

/** Starts a fiber with the clock and the services of the loop. */
type Fork = (effect: Effect.Effect<void>) => Fiber.Fiber<void>

/** Listeners of the application, whose faults are not the client's. */
const makeListeners = <A>() => {
  const listeners = new Set<(value: A) => void>()
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
      for (const listener of Array.from(listeners)) {
        try {
          listener(value)
        } catch (error) {
          // Where the platform shows errors that nobody caught; it does not end the program.
          const { reportError }: Partial<typeof globalThis> = globalThis
          reportError?.(error)
        }
      }
    }
  }
}
