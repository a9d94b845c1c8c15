import { Context, Deferred, Effect, Fiber, Layer, Option, Queue, Redacted, type Scope, Stream } from "effect"
import { makeCore } from "./ClientCore.ts"
import type { ClientState } from "./ClientState.ts"
import type { ToolsRefused } from "./DeclaredTool.ts"
import { type Platform, thisPlatform } from "./loopback.ts"
import type { DropReason } from "./Registrations.ts"
import * as Tool from "./Tool.ts"
import type { WebSocketConstructor } from "./WebSocketLike.ts"

export interface ClientOptions {
  /** The bridge's address, such as `ws://127.0.0.1:31870`. */
  readonly url: string
  /** The application's key; see `generateClientKey`. */
  readonly key: Redacted.Redacted<string> | string
  /** A `WebSocket` constructor. Default: the platform's. */
  readonly socket?: WebSocketConstructor | undefined
  /** Whether to try a key again, slowly, that the bridge does not know. Default: true. */
  readonly authRetry?: boolean | undefined
  /** What a failed connection is explained with. Default: the platform's own. */
  readonly platform?: Platform | undefined
}

/** A batch of tools that the client keeps registered. */
export interface Registration {
  /**
   * Waits until the bridge has all of them, and gives their public names in order. Fails
   * when the bridge refuses the batch, which is then forgotten.
   */
  readonly publicNames: Effect.Effect<ReadonlyArray<string>, ToolsRefused>
}

/**
 * The application's connection to its bridge (bridge protocol, part j).
 *
 * It connects when its layer is built, and again after every drop, for ever; closing the
 * scope ends it. Tools are declared whether it is connected or not, and every session
 * gets those that are declared then.
 */
export class FrontendToolsClient extends Context.Service<
  FrontendToolsClient,
  {
    readonly state: Effect.Effect<ClientState>
    /** The state now and every one to come, to that of the client's end. */
    readonly states: Stream.Stream<ClientState>
    /** Waits until the client is connected; interrupts where it ends before. */
    readonly connected: Effect.Effect<ClientState>
    /**
     * Keeps tools registered until the scope closes, and returns at once. A name that
     * was registered in the same scope is replaced; one of another scope refuses the
     * batch. Calls that run when the scope closes are interrupted.
     */
    readonly register: <R = never>(
      ...tools: ReadonlyArray<Tool.Tool<R>>
    ) => Effect.Effect<Registration, ToolsRefused, R | Scope.Scope>
    /** Tools that the bridge refused from now on, also those of an earlier session. */
    readonly refusals: Stream.Stream<ToolsRefused>
    /** Ends the wait before the next attempt; starts again where the client has given up. */
    readonly retryNow: Effect.Effect<void>
    /** Number of calls that run. */
    readonly inFlight: Effect.Effect<number>
  }
>()("effect-frontend-tools/client/FrontendToolsClient") {
  static readonly make = Effect.fnUntraced(function* (options: ClientOptions) {
    const core = makeCore(
      {
        url: options.url,
        key: Redacted.isRedacted(options.key) ? options.key : Redacted.make(options.key),
        socket: options.socket,
        reconnect: true,
        retryFirst: true,
        authRetry: options.authRetry ?? true,
        platform: options.platform ?? thisPlatform()
      },
      Effect.runForkWith(yield* Effect.context())
    )
    yield* Effect.acquireRelease(Effect.sync(core.start), () => Effect.sync(core.stop))

    const follow = <A>(subscribe: (listener: (value: A) => void) => () => void, first: () => ReadonlyArray<A>) =>
      Stream.callback<A>(
        (queue) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              Queue.offerAllUnsafe(queue, first())
              return subscribe((value) => Queue.offerUnsafe(queue, value))
            }),
            (unsubscribe) => Effect.sync(unsubscribe)
          ),
        // Whoever falls behind misses the oldest: the newest state is the one that holds.
        { bufferSize: 256, strategy: "sliding" }
      )

    const states = Stream.takeUntil(
      follow(core.onState, () => [core.state()]),
      ({ reason }) => reason === "stopped"
    )

    const register = Effect.fnUntraced(function* <R>(...tools: ReadonlyArray<Tool.Tool<R>>) {
      const owner = yield* Effect.scope
      const run = Effect.runForkWith(yield* Effect.context<R>())
      const batch = yield* Effect.forEach(tools, (tool) => Tool.declared(tool, (call) => Fiber.runIn(run(call), owner)))
      let settled = Deferred.makeUnsafe<ReadonlyArray<string>, ToolsRefused>()
      const settle = (outcome: Effect.Effect<ReadonlyArray<string>, ToolsRefused>) => {
        // A refusal in a later session replaces what was true before.
        if (!Deferred.doneUnsafe(settled, outcome)) {
          settled = Deferred.makeUnsafe()
          Deferred.doneUnsafe(settled, outcome)
        }
      }
      const listener = {
        registered: (names: ReadonlyArray<string>) => settle(Effect.succeed(names)),
        refused: (refusal: ToolsRefused) => settle(Effect.fail(refusal)),
        // It stays declared, and the next session answers, if there is one.
        dropped: (why: DropReason) => {
          if (why === "stopped") settle(Effect.interrupt)
        }
      }
      yield* Effect.acquireRelease(
        Effect.suspend(() => {
          const declared = core.registrations.declare(batch, owner, listener)
          return Effect.fromResult(declared)
        }),
        (withdraw) => Effect.sync(withdraw)
      )
      const registration: Registration = { publicNames: Effect.suspend(() => Deferred.await(settled)) }
      return registration
    })

    return FrontendToolsClient.of({
      state: Effect.sync(core.state),
      states,
      connected: states.pipe(
        Stream.filter(({ status }) => status === "connected"),
        Stream.runHead,
        Effect.flatMap(Option.match({ onNone: () => Effect.interrupt, onSome: (state) => Effect.succeed(state) }))
      ),
      register,
      refusals: follow(core.onRefused, () => []),
      retryNow: Effect.sync(core.start),
      inFlight: Effect.sync(core.calls.size)
    })
  })

  /** A client that lives as long as the layer's scope. */
  static readonly layer = (options: ClientOptions): Layer.Layer<FrontendToolsClient> =>
    Layer.effect(FrontendToolsClient, FrontendToolsClient.make(options))
}
