/** A running application for tests: a page without a browser, whose tools are effects. */
import { sha256 } from "@noble/hashes/sha2.js"
import { Cause, Deferred, type Duration, Effect, Exit, Fiber, Option, Result, Schema, type Scope } from "effect"
import { Hex } from "effect/encoding"
import { ApplicationError } from "../../domain/bridge/BridgeError.ts"
import { ClientKey } from "../../domain/bridge/ClientKey.ts"
import type { CallErrorCode } from "../../domain/bridge/ErrorCode.ts"
import {
  type CallFrame,
  decodeServerFrame,
  FEATURES,
  type Phase,
  PROTOCOL_VERSION,
  type ServerFrame
} from "../../domain/bridge/Frame.ts"
import { Namespace } from "../../domain/bridge/ToolName.ts"
import type { BridgeServer } from "../bridge/BridgeServer.ts"
import { Roster } from "../bridge/Roster.ts"
import { dial, type TestLine } from "./TestLine.ts"
import type { TestTool } from "./TestTool.ts"

/** The bridge refused what the application asked, with the code and text it sent. */
export class TestRefused extends Schema.TaggedError<TestRefused>()("TestRefused", {
  code: Schema.String,
  message: Schema.String
}) {}

/** A call as the application received it. */
export type TestCall = Pick<CallFrame, "callId" | "name" | "args">

/** What the bridge said about a call that nobody waits for any more. */
export interface TestCancel {
  readonly callId: string
  readonly reason: string
}

/**
 * What an application can do wrong:
 *
 * - `garbage`, `binary`, `helloAgain`: something that ends its session.
 * - `strangeFrame`: a frame of a type that does not exist.
 * - `answersNobodyAsked`: the result of a call that there is not.
 * - `answersTwice`: every result from now on is sent a second time.
 * - `silence`: it does not answer pings from now on, as one that hangs.
 * - `stopsReading`: it reads nothing from now on, so that the next call finds no room.
 */
export type Misbehaviour =
  | "garbage"
  | "binary"
  | "helloAgain"
  | "strangeFrame"
  | "answersNobodyAsked"
  | "answersTwice"
  | "silence"
  | "stopsReading"

export interface TestApplicationOptions<R = never> {
  /** What it registers as soon as it is welcome, in one batch. */
  readonly tools?: ReadonlyArray<TestTool<R>> | undefined
  /** Its key. Absent: one of the namespace's own, which `connect` registers with the roster. */
  readonly key?: string | undefined
  /** The extensions that it says it knows. Absent: all that there are. */
  readonly features?: ReadonlyArray<string> | undefined
}

/** An application that is connected, or was. */
export interface TestApplication<R = never> {
  readonly namespace: Namespace
  readonly key: string
  /** Its line to the bridge now, to speak in frames. `reload` makes another. */
  readonly line: () => TestLine
  /** Registers a batch and gives the public names. */
  readonly register: (...tools: ReadonlyArray<TestTool<R>>) => Effect.Effect<ReadonlyArray<string>, TestRefused>
  /** Takes tools back, and gives the raw names of those that were there. */
  readonly unregister: (...rawNames: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, TestRefused>
  /** Every call it received, over all its connections. */
  readonly calls: () => ReadonlyArray<TestCall>
  /** Every call that was cancelled while it ran, which interrupts the tool's effect. */
  readonly cancels: () => ReadonlyArray<TestCancel>
  /** What the bridge objected to without being asked. */
  readonly errors: () => ReadonlyArray<TestRefused>
  /** Leaves without a word, as a page that is closed. Its session has ended when this returns. */
  readonly drop: Effect.Effect<void>
  /** Leaves and comes back with the tools it had. What it was doing is lost. */
  readonly reload: Effect.Effect<void, TestRefused>
  /** Every answer from now on takes this much longer; zero for none. */
  readonly slow: (by: Duration.Input) => Effect.Effect<void>
  /** Keeps every answer from now on to itself. */
  readonly hold: Effect.Effect<void>
  /** Sends the answers that were held, however late that is, and gives their number. */
  readonly release: Effect.Effect<number>
  readonly misbehave: (how: Misbehaviour) => Effect.Effect<void>
  /** Ends everything that it does from now on other than it should: slowness and held answers too. */
  readonly behave: Effect.Effect<void>
  /** Waits until the session has ended, and says how: by a close code, at once, or because it left. */
  readonly ended: Effect.Effect<number | "terminated" | "left">
}

/** The key of a namespace in tests: any roster can be told it before. */
export const testKey = (namespace: string): ClientKey =>
  ClientKey.make(Hex.encode(sha256(new TextEncoder().encode(`the test key of ${namespace}`))))

type Answer = Extract<ServerFrame, { readonly type: "welcome" | "registered" | "unregistered" }>

interface Life {
  readonly line: TestLine
  phase: Phase
  /** Who waits for an answer, in the order of asking. */
  readonly waiting: Array<Deferred.Deferred<Answer, TestRefused>>
}

const disconnected = new TestRefused({ code: "disconnected", message: "the session ended before the bridge answered" })

const asError = (cause: Cause.Cause<unknown>): { readonly code: CallErrorCode; readonly message: string } => {
  const failure = Cause.squash(cause)
  if (failure instanceof ApplicationError) return { code: failure.code, message: failure.detail }
  return { code: "internal", message: failure instanceof Error ? failure.message : String(failure) }
}

/**
 * Connects an application until the scope closes, welcomed and with its tools
 * registered when this returns.
 *
 * With the parts of `TestBridge` all of it happens at once, without time passing. Only
 * where another application has the namespace does the bridge take up to a second of
 * the clock. Fails with `TestRefused` when the roster or the bridge refuses.
 */
export const connect = Effect.fnUntraced(function* <R = never>(
  namespaceText: string,
  options: TestApplicationOptions<R> = {}
): Effect.fn.Return<TestApplication<R>, TestRefused, BridgeServer | R | Roster | Scope.Scope> {
  const namespace = Namespace.make(namespaceText)
  const context = yield* Effect.context<BridgeServer | R>()
  const key = options.key ?? (yield* admit(namespace))
  const runFork = Effect.runForkWith(context)

  const tools = new Map<string, TestTool<R>>()
  const calls: Array<TestCall> = []
  const cancels: Array<TestCancel> = []
  const errors: Array<TestRefused> = []
  const handlers = new Map<string, Fiber.Fiber<void>>()
  const held: Array<object> = []
  let delay: Duration.Input = 0
  let holding = false
  let mute = false
  let twice = false
  let life: Life | undefined

  const say = (frame: object) => {
    life?.line.say(frame)
    if (twice) life?.line.say(frame)
  }

  const deliver = (frame: object) =>
    Effect.sync(() => {
      if (holding) held.push(frame)
      else say(frame)
    })

  const handle = (frame: CallFrame) => {
    const { args, callId, name } = frame
    calls.push({ callId, name, args })
    const tool = tools.get(name)
    const running =
      tool === undefined
        ? Effect.fail(new ApplicationError({ code: "unknown_tool", detail: `there is no tool "${name}"` }))
        : Effect.suspend(() => tool.run(args))
    const handler = runFork(
      running.pipe(
        Effect.matchCause({
          onSuccess: (result) => ({ type: "callResult", callId, ok: true, result }),
          onFailure: (cause) => ({ type: "callResult", callId, ok: false, error: asError(cause) })
        }),
        Effect.flatMap((answer) =>
          delay === 0 ? deliver(answer) : Effect.andThen(Effect.sleep(delay), deliver(answer))
        )
      )
    )
    if (handler.pollUnsafe() !== undefined) return
    handlers.set(callId, handler)
    handler.addObserver(() => handlers.delete(callId))
  }

  const hear = (from: Life, text: string) => {
    const { line, waiting } = from
    line.take()
    const decoded = decodeServerFrame(text, from.phase)
    if (Result.isFailure(decoded)) throw decoded.failure
    const frame = decoded.success
    from.phase = "session"
    switch (frame.type) {
      case "call": {
        return handle(frame)
      }
      case "cancel": {
        cancels.push({ callId: frame.callId, reason: frame.reason })
        handlers.get(frame.callId)?.interruptUnsafe()
        return
      }
      case "ping": {
        if (!mute) line.say({ type: "pong" })
        return
      }
      case "error": {
        const refused = new TestRefused({ code: frame.code, message: frame.message })
        const waiter = waiting.shift()
        if (waiter === undefined) errors.push(refused)
        else Deferred.doneUnsafe(waiter, Exit.fail(refused))
        return
      }
      default: {
        const waiter = waiting.shift()
        if (waiter !== undefined) Deferred.doneUnsafe(waiter, Exit.succeed(frame))
      }
    }
  }

  const ask = (frame: object): Effect.Effect<Answer, TestRefused> =>
    Effect.suspend(() => {
      if (life === undefined || life.line.session.pollUnsafe() !== undefined) return Effect.fail(disconnected)
      const answer = Deferred.makeUnsafe<Answer, TestRefused>()
      life.waiting.push(answer)
      life.line.say(frame)
      return Deferred.await(answer)
    })

  const send = Effect.fnUntraced(function* (batch: ReadonlyArray<TestTool<R>>) {
    // A call may come before the answer is read.
    const before = new Map(tools)
    for (const tool of batch) tools.set(tool.remote.name, tool)
    const answer = yield* ask({ type: "register", tools: batch.map(({ remote }) => remote) }).pipe(
      Effect.onError(() =>
        Effect.sync(() => {
          tools.clear()
          for (const [name, tool] of before) tools.set(name, tool)
        })
      )
    )
    return answer.type === "registered" ? answer.names : []
  })

  const open = Effect.gen(function* () {
    const line = yield* dial
    const next: Life = { line, phase: "hello", waiting: [] }
    life = next
    line.session.addObserver(() => {
      for (const waiter of next.waiting.splice(0)) Deferred.doneUnsafe(waiter, Exit.fail(disconnected))
    })
    line.listen((text) => hear(next, text))
    yield* ask({ type: "hello", protocol: PROTOCOL_VERSION, key, features: options.features ?? FEATURES })
    const batch = Array.from(tools.values())
    if (batch.length > 0) yield* send(batch)
  }).pipe(Effect.provideContext(context))

  const drop = Effect.suspend(() => {
    if (life === undefined) return Effect.void
    for (const handler of handlers.values()) handler.interruptUnsafe()
    life.line.close()
    return Effect.asVoid(Fiber.await(life.line.session))
  })

  const line = (): TestLine => {
    if (life === undefined) throw new Error("the application never connected")
    return life.line
  }

  const misdeeds: Readonly<Record<Misbehaviour, () => void>> = {
    garbage: () => line().send("}{"),
    binary: () => line().sendBinary(),
    helloAgain: () => line().say({ type: "hello", protocol: PROTOCOL_VERSION, key }),
    strangeFrame: () => line().say({ type: "telemetry" }),
    answersNobodyAsked: () => line().say({ type: "callResult", callId: "nobody-asked", ok: true, result: "surprise" }),
    answersTwice: () => {
      twice = true
    },
    silence: () => {
      mute = true
    },
    stopsReading: () => line().stall(Number.MAX_SAFE_INTEGER)
  }

  const release = Effect.sync(() => {
    holding = false
    const late = held.splice(0)
    for (const frame of late) say(frame)
    return late.length
  })

  yield* Effect.addFinalizer(() => drop)
  for (const tool of options.tools ?? []) tools.set(tool.remote.name, tool)
  yield* open

  return {
    namespace,
    key,
    line,
    register: (...batch) => send(batch),
    unregister: (...rawNames) =>
      Effect.map(ask({ type: "unregister", names: rawNames }), (answer) => {
        const names = answer.type === "unregistered" ? answer.names : []
        for (const name of names) tools.delete(name)
        return names
      }),
    calls: () => calls,
    cancels: () => cancels,
    errors: () => errors,
    drop,
    reload: Effect.andThen(drop, open),
    slow: (by) =>
      Effect.sync(() => {
        delay = by
      }),
    hold: Effect.sync(() => {
      holding = true
    }),
    release,
    misbehave: (how) => Effect.sync(() => misdeeds[how]()),
    behave: Effect.suspend(() => {
      delay = 0
      mute = false
      twice = false
      line().stall(0)
      return Effect.asVoid(release)
    }),
    ended: Effect.suspend(() => {
      const { ended, session } = line()
      return Effect.map(Fiber.await(session), () => ended() ?? "left")
    })
  }
})

/** Makes the roster know the namespace's key, where it does not yet. */
const admit = Effect.fnUntraced(function* (namespace: Namespace) {
  const roster = yield* Roster
  const key = testKey(namespace)
  if (Option.isSome(yield* roster.authenticate(key))) return key
  yield* roster
    .register(namespace, key)
    .pipe(Effect.mapError(({ message }) => new TestRefused({ code: "roster", message })))
  return key
})
