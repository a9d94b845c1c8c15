/** An application's side of the wire protocol over the platform's own WebSocket. */
import { Data, Deferred, Effect, Redacted, Result, type Scope } from "effect"
import {
  type CallFrame,
  type ClientFrame,
  decodeServerFrame,
  encodeClientFrame,
  PROTOCOL_VERSION
} from "effect-frontend-tools/protocol"
import type { ApplicationTool } from "./todoList.ts"

/** The bridge cannot be reached, or it refused the application. */
export class ConnectError extends Data.TaggedError("ConnectError")<{ readonly message: string }> {}

export interface Connected {
  readonly namespace: string
  /** What the tools are called where the model is. */
  readonly names: ReadonlyArray<string>
  /** Resolves when the bridge is gone. */
  readonly closed: Effect.Effect<void>
}

const answerOf = ({ args, callId }: CallFrame, tool: ApplicationTool | undefined): ClientFrame => {
  const failed = (code: string, message: string): ClientFrame => ({
    type: "callResult",
    callId,
    ok: false,
    error: { code, message }
  })
  if (tool === undefined) return failed("unknown_tool", "this application has no such tool")
  try {
    return { type: "callResult", callId, ok: true, result: tool.execute(args) }
  } catch (error) {
    return failed("invalid_args", error instanceof Error ? error.message : String(error))
  }
}

/** Connects the application and offers its tools, until the scope closes. */
export const connect = (options: {
  readonly url: string
  readonly key: Redacted.Redacted
  readonly tools: ReadonlyArray<ApplicationTool>
}): Effect.Effect<Connected, ConnectError, Scope.Scope> =>
  Effect.gen(function* () {
    const { key, tools, url } = options
    const connected = Deferred.makeUnsafe<Omit<Connected, "closed">, ConnectError>()
    const closed = Deferred.makeUnsafe<void>()
    const fail = (message: string) => Deferred.doneUnsafe(connected, Effect.fail(new ConnectError({ message })))
    const toolOf = new Map<string, ApplicationTool>(tools.map((tool) => [tool.spec.name, tool]))

    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => new WebSocket(url)),
      (open) => Effect.sync(() => open.close())
    )
    const send = (frame: ClientFrame) => socket.send(encodeClientFrame(frame))
    let namespace: string | undefined

    socket.onopen = () => send({ type: "hello", protocol: PROTOCOL_VERSION, key: Redacted.value(key) })
    socket.onclose = () => {
      fail(`the bridge at ${url} cannot be reached`)
      Deferred.doneUnsafe(closed, Effect.void)
    }
    socket.onmessage = ({ data }) => {
      const decoded = decodeServerFrame(String(data), namespace === undefined ? "hello" : "session")
      // What a newer bridge may say beyond this protocol is not for this application.
      if (Result.isFailure(decoded)) return
      const frame = decoded.success
      switch (frame.type) {
        case "welcome": {
          namespace = frame.namespace
          return send({ type: "register", tools: tools.map(({ spec }) => spec) })
        }
        case "registered": {
          return void Deferred.doneUnsafe(connected, Effect.succeed({ namespace: namespace ?? "", names: frame.names }))
        }
        case "call": {
          return send(answerOf(frame, toolOf.get(frame.name)))
        }
        case "ping": {
          return send({ type: "pong" })
        }
        case "error": {
          return void fail(`${frame.code}: ${frame.message}`)
        }
        case "unregistered": {
          return
        }
      }
    }

    return { ...(yield* Deferred.await(connected)), closed: Deferred.await(closed) }
  })
