import { Context, Effect, Exit, Layer, Option, type Scope } from "effect"
import {
  ApplicationError,
  CallError,
  type CallFailure,
  ConnectionClosed,
  DeadlineExceeded,
  NotJson,
  Overloaded,
  SessionGone
} from "../../domain/bridge/BridgeError.ts"
import {
  type CallResultFrame,
  type CancelReason,
  encodeServerFrame,
  toCallErrorCode
} from "../../domain/bridge/Frame.ts"
import type { Namespace, PublicName, RawName } from "../../domain/bridge/ToolName.ts"
import * as Deadlines from "../internal/deadlines.ts"
import { traced } from "../internal/tracing.ts"
import { BridgeConfig } from "./BridgeConfig.ts"
import * as BridgeMetrics from "./BridgeMetrics.ts"
import type { Connection } from "./Connection.ts"

/** An application's text goes into a model's context: it gets no more room than this, in UTF-16 units. */
const MAX_ERROR_LENGTH = 4096

/** The session that calls are forwarded to. */
export interface CallTarget {
  readonly namespace: Namespace
  readonly connection: Connection
  /** The application wants to hear that nobody waits for a call any more (part a.5). */
  readonly cancels: boolean
  /** The application does not read: the session has to end. */
  readonly onOverload: () => void
}

/** The calls of one session. */
export interface SessionCalls {
  /**
   * Runs a tool in the application. Settles exactly once: with the result, or with a
   * `CallError`. Interruption is the caller's abort; a result that comes after the
   * end is dropped.
   */
  readonly forward: (
    tool: { readonly rawName: RawName; readonly publicName: PublicName },
    args: unknown
  ) => Effect.Effect<unknown, CallError>
  /** Takes the application's answer. Says whether it ended a call. */
  readonly settle: (frame: CallResultFrame) => boolean
}

interface PendingCall {
  readonly id: string
  readonly rawName: RawName
  readonly session: PendingCalls
  readonly resume: (exit: Exit.Exit<unknown, CallError>) => void
  readonly cancel: ((id: string, reason: CancelReason) => void) | undefined
  deadline: Deadlines.Deadline<PendingCall> | undefined
}

type PendingCalls = Map<string, PendingCall>

const failure = (reason: CallFailure) => Exit.fail(new CallError({ reason }))

/**
 * What is in flight (bridge protocol, part e).
 *
 * Each session opens its own calls here; the deadline of all of them is watched by
 * one fiber. When the scope of a session closes, its calls fail with
 * `ConnectionClosed` and later ones with `SessionGone`.
 */
export class CallDispatcher extends Context.Service<
  CallDispatcher,
  {
    readonly open: (target: CallTarget) => Effect.Effect<SessionCalls, never, Scope.Scope>
    /** Number of calls that wait for an answer, over all sessions. */
    readonly inFlight: Effect.Effect<number>
  }
>()("effect-frontend-tools/layers/bridge/CallDispatcher") {
  static readonly layer: Layer.Layer<CallDispatcher, never, BridgeConfig> = Layer.effect(
    CallDispatcher,
    Effect.gen(function* () {
      const { callTimeoutMs, maxBufferedBytes } = yield* BridgeConfig
      const context = yield* Effect.context()
      let inFlight = 0

      /** Takes a call off the books. Whoever does that first ends it. */
      const forget = (call: PendingCall, outcome: BridgeMetrics.CallOutcome): boolean => {
        if (!call.session.delete(call.id)) return false
        inFlight--
        if (call.deadline !== undefined) {
          deadlines.remove(call.deadline)
          BridgeMetrics.callEnded(outcome, deadlines.now() - call.deadline.at + callTimeoutMs, context)
        }
        return true
      }

      const settle = (call: PendingCall, outcome: BridgeMetrics.CallOutcome, exit: Exit.Exit<unknown, CallError>) => {
        const first = forget(call, outcome)
        if (first) call.resume(exit)
        return first
      }

      const deadlines = yield* Deadlines.make((call: PendingCall) => {
        const reason = new DeadlineExceeded({ rawName: call.rawName, millis: callTimeoutMs })
        call.cancel?.(call.id, "timeout")
        settle(call, reason._tag, failure(reason))
      })

      const open = Effect.fnUntraced(function* ({ namespace, connection, cancels, onOverload }: CallTarget) {
        const pending: PendingCalls = new Map()
        let closed = false

        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            closed = true
            if (pending.size === 0) return
            const exit = failure(new ConnectionClosed({}))
            // A caller resumes inside `settle`: one that retries finds `closed` set.
            for (const call of pending.values()) settle(call, "ConnectionClosed", exit)
          })
        )

        const cancel = cancels
          ? (callId: string, reason: CancelReason) => {
              const text = encodeServerFrame({ type: "cancel", callId, reason })
              connection.send(text)
              BridgeMetrics.charactersSent.updateUnsafe(text.length, context)
            }
          : undefined

        const start = (
          rawName: RawName,
          args: unknown,
          resume: (exit: Exit.Exit<unknown, CallError>) => void
        ): PendingCall | undefined => {
          const refuse = (reason: CallFailure) => {
            BridgeMetrics.callEnded(reason._tag, 0, context)
            resume(failure(reason))
            return undefined
          }
          if (closed) return refuse(new SessionGone({ rawName }))
          const id = globalThis.crypto.randomUUID()
          let text: string
          try {
            text = encodeServerFrame({ type: "call", callId: id, name: rawName, args })
          } catch (error) {
            return refuse(new NotJson({ rawName, what: "arguments", detail: String(error) }))
          }
          if (connection.bufferedBytes() > maxBufferedBytes) {
            onOverload()
            return refuse(new Overloaded({ rawName }))
          }
          const call: PendingCall = { id, rawName, session: pending, resume, cancel, deadline: undefined }
          // On the books before it is sent: a line in memory answers before `send` returns.
          pending.set(id, call)
          inFlight++
          call.deadline = deadlines.add(call, callTimeoutMs)
          connection.send(text)
          BridgeMetrics.charactersSent.updateUnsafe(text.length, context)
          return call
        }

        const send = (rawName: RawName, args: unknown) =>
          Effect.callback<unknown, CallError>((resume) => {
            const call = start(rawName, args, resume)
            return call === undefined
              ? undefined
              : Effect.sync(() => {
                  if (forget(call, "CallAborted")) cancel?.(call.id, "aborted")
                })
          })

        const sessionCalls: SessionCalls = {
          forward: ({ rawName, publicName }, args) =>
            // Names only: neither arguments nor result belong into a trace.
            traced(send(rawName, args), {
              name: "frontend_tools.call",
              kind: "client",
              attributes: {
                "frontend_tools.namespace": namespace,
                "frontend_tools.raw_name": rawName,
                "frontend_tools.public_name": publicName
              },
              outcome: outcomeOf
            }),

          settle: (frame) => {
            const call = pending.get(frame.callId)
            if (call === undefined) return false
            if (frame.ok) return settle(call, "Success", Exit.succeed(frame.result ?? null))
            const reason = new ApplicationError({
              code: toCallErrorCode(frame.error.code),
              detail: frame.error.message.slice(0, MAX_ERROR_LENGTH)
            })
            return settle(call, reason._tag, failure(reason))
          }
        }
        return sessionCalls
      })

      return CallDispatcher.of({ open, inFlight: Effect.sync(() => inFlight) })
    })
  )
}

const outcomeOf = (exit: Exit.Exit<unknown, CallError>): BridgeMetrics.CallOutcome => {
  if (Exit.isSuccess(exit)) return "Success"
  const error = Exit.findErrorOption(exit)
  return Option.isSome(error) ? error.value.reason._tag : "CallAborted"
}
