/**
 * One application's session: from the first byte to the last (bridge protocol, parts
 * a and f).
 *
 * A session is one fiber with a Scope of its own. What the application sends is
 * handled in the connection's callback, without a fiber per frame: a result settles
 * its call right there. Batches run in order, each before the next frame's.
 */
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Fiber,
  Latch,
  Layer,
  Option,
  PubSub,
  References,
  Result,
  type Scope,
  Semaphore
} from "effect"
import {
  decodeClientFrame,
  encodeServerFrame,
  knownFeatures,
  PROTOCOL_VERSION,
  SERVER_ID,
  type ServerFrame
} from "../../domain/bridge/Frame.ts"
import type { FrameRefused } from "../../domain/bridge/FrameRefused.ts"
import type { RemoteTool } from "../../domain/bridge/RemoteTool.ts"
import type { Namespace } from "../../domain/bridge/ToolName.ts"
import { traced } from "../internal/tracing.ts"
import { Admission, type Slot } from "./Admission.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import { BridgeEvent } from "./BridgeEvent.ts"
import * as BridgeMetrics from "./BridgeMetrics.ts"
import { CallDispatcher, type SessionCalls } from "./CallDispatcher.ts"
import { CloseCode, type Connection } from "./Connection.ts"
import { MirrorRegistry, type SessionTools } from "./MirrorRegistry.ts"
import { Roster } from "./Roster.ts"
import { type DirectoryEntry, SessionDirectory } from "./SessionDirectory.ts"

/** How a session ended. */
interface End {
  readonly reason: string
  /** The close code that tells the application; `terminate` where it would not hear it, nothing where it left. */
  readonly how: number | "terminate" | "left"
}

const disposed: End = { reason: "the bridge shuts down", how: CloseCode.goingAway }

const PING = encodeServerFrame({ type: "ping" })

// A fiber yields to the others after some two thousand steps. A batch is answered before
// the next frame is looked at, and what a session owned is gone before another socket's
// is, however many tools that are.
const atOnce = References.PreventSchedulerYield

/** What a live session works with. */
interface Live {
  readonly namespace: Namespace
  readonly calls: SessionCalls
  readonly tools: SessionTools
}

/** Runs sessions, each over one connection. */
export class SessionRunner extends Context.Service<
  SessionRunner,
  {
    /**
     * Runs the session of a connection until it ends, however that comes about.
     * Interruption ends it in order (close code 1001).
     */
    readonly run: (connection: Connection, slot: Slot) => Effect.Effect<void>
    /** What happens in the sessions, to subscribe to. */
    readonly events: PubSub.PubSub<BridgeEvent>
  }
>()("effect-frontend-tools/layers/bridge/SessionRunner") {
  static readonly layer: Layer.Layer<
    SessionRunner,
    never,
    Admission | BridgeConfig | CallDispatcher | MirrorRegistry | Roster | SessionDirectory
  > = Layer.effect(
    SessionRunner,
    Effect.gen(function* () {
      const config = yield* BridgeConfig
      const admission = yield* Admission
      const dispatcher = yield* CallDispatcher
      const registry = yield* MirrorRegistry
      const roster = yield* Roster
      const directory = yield* SessionDirectory
      const context = yield* Effect.context()
      const runFork = Effect.runForkWith(Context.add(context, atOnce, true))
      // A watcher that falls behind loses the oldest events instead of holding anybody up.
      const events = yield* Effect.acquireRelease(PubSub.sliding<BridgeEvent>(1024), PubSub.shutdown)

      const session = Effect.fnUntraced(function* (connection: Connection, slot: Slot, scope: Scope.Scope) {
        const fiber = yield* Effect.withFiberSucceed((current) => current)
        const hello = Deferred.makeUnsafe<{ readonly key: string; readonly features?: unknown }>()
        const heard = Latch.makeUnsafe(true)
        const batches = Semaphore.makeUnsafe(1)
        let live: Live | undefined
        let ended: End | undefined
        let received = 0

        const sendText = (text: string) => {
          connection.send(text)
          BridgeMetrics.charactersSent.updateUnsafe(text.length, context)
        }
        const send = (frame: ServerFrame) => sendText(encodeServerFrame(frame))

        /** Settles how the session ended, if it had not, and makes its fiber clear up. */
        const end = (why: End) => {
          if (ended !== undefined) return
          ended = why
          fiber.interruptUnsafe()
        }

        const refuse = (code: FrameRefused["code"], message: string) => {
          if (ended !== undefined) return
          send({ type: "error", code, message })
          if (live === undefined) BridgeMetrics.handshakeRefused(code, context)
          end({ reason: code, how: CloseCode.policyViolation })
        }

        /** Runs a batch after those before it, and ends it with the session. */
        const inOrder = (batch: Effect.Effect<void>) => {
          Fiber.runIn(runFork(batches.withPermit(batch)), scope)
        }

        const register = ({ namespace, tools }: Live, batch: ReadonlyArray<RemoteTool>) =>
          tools.register(batch).pipe(
            Effect.matchEffect({
              onSuccess: (names) =>
                Effect.suspend(() => {
                  send({ type: "registered", names })
                  PubSub.publishUnsafe(events, BridgeEvent.ToolsRegistered({ namespace, names }))
                  return Effect.logInfo(`registered ${names.join(", ")}`)
                }),
              onFailure: ({ code, message }) =>
                Effect.suspend(() => {
                  send({ type: "error", code, message })
                  return Effect.logWarning(`a batch of ${batch.length} tools was refused (${code}): ${message}`)
                })
            }),
            Effect.annotateLogs("namespace", namespace)
          )

        const unregister = ({ namespace, tools }: Live, rawNames: ReadonlyArray<string>) =>
          tools.unregister(rawNames).pipe(
            Effect.flatMap((names) => {
              send({ type: "unregistered", names })
              PubSub.publishUnsafe(events, BridgeEvent.ToolsUnregistered({ namespace, names }))
              return Effect.logInfo(`unregistered ${names.join(", ")}`)
            }),
            Effect.annotateLogs("namespace", namespace)
          )

        const refuseFrame = ({ code, fatal, message }: FrameRefused) =>
          fatal ? refuse(code, message) : send({ type: "error", code, message })

        const onText = (text: string) => {
          if (ended !== undefined) return
          received++
          heard.openUnsafe()
          BridgeMetrics.charactersReceived.updateUnsafe(text.length, context)
          if (text.length > (live === undefined ? config.maxHelloBytes : config.maxFrameBytes)) return onTooLarge()
          const decoded = decodeClientFrame(text, live === undefined ? "hello" : "session")
          if (Result.isFailure(decoded)) {
            const refused = decoded.failure
            if (refused.fatal || live === undefined) refuseFrame(refused)
            // Its answer keeps its place behind those of the batches before it.
            else inOrder(Effect.sync(() => refuseFrame(refused)))
            return
          }
          const frame = decoded.success
          switch (frame.type) {
            case "hello": {
              slot.spoke()
              if (!Deferred.doneUnsafe(hello, Effect.succeed(frame))) {
                refuse("invalid_message", "hello is only valid as the first frame")
              }
              return
            }
            case "register": {
              if (live !== undefined) inOrder(register(live, frame.tools))
              return
            }
            case "unregister": {
              if (live !== undefined) inOrder(unregister(live, frame.names))
              return
            }
            case "callResult": {
              live?.calls.settle(frame)
              return
            }
            case "pong": {
              return
            }
          }
        }

        const onTooLarge = () => end({ reason: "a frame was too large", how: CloseCode.tooLarge })

        // First in, last out: the socket closes after everything the session owned is released.
        yield* Effect.addFinalizer(() =>
          Effect.suspend(() => {
            slot.leave()
            ended ??= disposed
            const { how, reason } = ended
            if (how === "terminate") connection.terminate()
            else if (how !== "left") connection.close(how, reason)
            if (live !== undefined || how === "left" || ended === disposed) return Effect.void
            PubSub.publishUnsafe(events, BridgeEvent.HandshakeRefused({ reason }))
            return Effect.logWarning(`handshake refused: ${reason}`)
          })
        )
        slot.evict = (why) => {
          if (why === "handshake timeout") {
            send({
              type: "error",
              code: "invalid_message",
              message: `no hello within ${config.handshakeTimeoutMs}ms`
            })
            end({ reason: why, how: CloseCode.policyViolation })
          } else {
            end({ reason: why, how: "terminate" })
          }
        }
        connection.start({
          onText,
          onTooLarge,
          onBinary: () => {
            if (ended !== undefined) return
            send({ type: "error", code: "invalid_message", message: "frame must be a text message" })
            end({ reason: "invalid_message", how: CloseCode.unsupportedData })
          },
          onClose: () => end({ reason: "the application left", how: "left" })
        })

        const { key, features: listed } = yield* Deferred.await(hello)
        const client = yield* roster.authenticate(key)
        if (Option.isNone(client)) {
          yield* Effect.sleep(admission.penalty())
          return refuse("auth_failed", "key rejected")
        }
        const namespace = client.value

        const entry: DirectoryEntry = {
          namespace,
          heard,
          toolCount: () => live?.tools.size() ?? 0,
          ping: () => sendText(PING),
          end: ({ reason, terminate }) => end({ reason, how: terminate ? "terminate" : CloseCode.policyViolation })
        }
        const claimed = yield* Effect.result(directory.claim(entry))
        if (Result.isFailure(claimed)) return refuse("duplicate_connection", claimed.failure.message)
        // The key may have been revoked while the incumbent was asked.
        if (Option.isNone(yield* roster.authenticate(key))) return refuse("auth_failed", "key rejected")

        const features = knownFeatures(listed)
        const calls = yield* dispatcher.open({
          namespace,
          connection,
          cancels: features.includes("cancel"),
          onOverload: () => end({ reason: "the application does not read its connection", how: "terminate" })
        })
        const tools = yield* registry.open({ namespace, calls })
        live = { namespace, calls, tools }
        slot.leave()
        connection.admit()
        send({
          type: "welcome",
          protocol: PROTOCOL_VERSION,
          server: SERVER_ID,
          namespace,
          // A client that knows no extension gets the frame as it was published.
          ...(features.length > 0 && { features, limits: { maxFrameBytes: config.maxFrameBytes } })
        })
        PubSub.publishUnsafe(events, BridgeEvent.SessionOpened({ namespace }))

        const liveness = Effect.gen(function* () {
          yield* Effect.logInfo("session opened")
          yield* Effect.sleep(config.pingIntervalMs)
          while (true) {
            const before = received
            sendText(PING)
            yield* Effect.sleep(config.pingIntervalMs)
            if (received === before) {
              yield* Effect.logWarning(`${SERVER_ID}: heartbeat timed out; dropping the "${namespace}" session`)
              return end({ reason: "heartbeat timed out", how: "terminate" })
            }
          }
        })

        return yield* traced(liveness, {
          name: "frontend_tools.session",
          kind: "server",
          attributes: { "frontend_tools.namespace": namespace },
          outcome: () => (ended ?? disposed).reason
        }).pipe(
          Effect.onExit(() => {
            const { reason } = ended ?? disposed
            PubSub.publishUnsafe(events, BridgeEvent.SessionClosed({ namespace, reason }))
            return Effect.logInfo(`session closed: ${reason}`)
          }),
          Effect.annotateLogs("namespace", namespace)
        )
      })

      return SessionRunner.of({
        events,
        // The session's own scope is the one it registers batches in.
        run: (connection, slot) =>
          Effect.scoped(Effect.flatMap(Effect.scope, (scope) => session(connection, slot, scope))).pipe(
            Effect.provideService(atOnce, true),
            Effect.catchCause((cause) =>
              Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("a session failed", cause)
            )
          )
      })
    })
  )
}
