/** One chat from its first line to its last: what is left of an earlier process, then messages. */
import { Duration, Effect, Stream } from "effect"
import type { AgentEvent, TurnOutcome } from "../domain/aidream/AgentEvent.ts"
import type { AidreamError } from "../domain/aidream/AidreamError.ts"
import { AgentId, ConversationId } from "../domain/aidream/Ids.ts"
import { AgentRuns } from "../layers/aidream/AgentRuns.ts"
import { AidreamApi } from "../layers/aidream/AidreamApi.ts"
import { ToolLibrary } from "../layers/aidream/ToolLibrary.ts"
import { BridgeServer } from "../layers/bridge/BridgeServer.ts"
import { MirrorRegistry } from "../layers/bridge/MirrorRegistry.ts"
import { type ApproveWrites, decideApprovals } from "./chatApprovals.ts"
import { ChatExit, codeOf, type ExitCode } from "./chatExit.ts"
import { ChatInput } from "./chatInput.ts"
import { ChatOutput } from "./chatOutput.ts"

export interface ChatOptions {
  readonly agent: string
  readonly conversation: string
  /** The conversation exists: finish what is left of its last turn first. */
  readonly continued: boolean
  /** One message, and then the end. Without it they come from the input. */
  readonly message: string | undefined
  readonly approveWrites: ApproveWrites
  /** Applications whose tools must be there before the first message. */
  readonly waitFor: ReadonlyArray<string>
}

/** How a turn, or the attempt to begin one, came out. */
type Outcome =
  | {
      readonly _tag: "Ended"
      readonly outcome: TurnOutcome
      /** The turn may go on once the backend can be reached again. */
      readonly lost: boolean
    }
  | { readonly _tag: "Refused"; readonly error: AidreamError }

/** How long applications get to connect: to be asked for at all, and to be found again after a restart. */
const CONNECT_PATIENCE = Duration.seconds(60)
const RECONNECT_PATIENCE = Duration.seconds(15)
const LOOK_AGAIN = Duration.millis(50)

/** Pauses before a lost turn is looked for again. In all they outlast a lease of a backend that died. */
const REOPENINGS = [0.5, 1, 2, 4, 8, 15, 15, 15, 15].map(Duration.seconds)

/** Runs the chat to its end. Fails with `ChatExit` when that is no good one. */
export const chat = Effect.fnUntraced(function* (options: ChatOptions) {
  const api = yield* AidreamApi
  const input = yield* ChatInput
  const library = yield* ToolLibrary
  const mirror = yield* MirrorRegistry
  const output = yield* ChatOutput
  const runs = yield* AgentRuns
  const bridge = yield* BridgeServer
  const decideBy = yield* decideApprovals(options.approveWrites)
  const agentId = AgentId.make(options.agent)
  const conversationId = ConversationId.make(options.conversation)
  const mode = options.approveWrites === "always" ? "act" : "ask"
  let isNew = !options.continued

  /** Waits for the condition, for at most so long. Says whether it came. */
  const waitUntil = Effect.fnUntraced(function* (ready: () => boolean, patience: Duration.Duration) {
    const wait = Effect.gen(function* () {
      while (!ready()) yield* Effect.sleep(LOOK_AGAIN)
    })
    return yield* Effect.timeoutOrElse(Effect.as(wait, true), {
      duration: patience,
      orElse: () => Effect.succeed(false)
    })
  })

  const missingApplications = () => {
    const here = new Set(Array.from(mirror.list(), ({ namespace }) => namespace))
    return options.waitFor.filter((namespace) => !here.has(namespace))
  }

  const awaitApplications = Effect.gen(function* () {
    const missing = missingApplications()
    if (missing.length === 0) return
    yield* output.fact({ event: "waiting", applications: missing }, `waiting for ${missing.join(", ")} to connect`)
    if (yield* waitUntil(() => missingApplications().length === 0, CONNECT_PATIENCE)) return
    return yield* new ChatExit({ code: 1, message: `${missingApplications().join(", ")} did not connect` })
  })

  // Of what was typed in one go, one line answers a question: the next question has not been read yet.
  const takeLines = Effect.fnUntraced(function* (lines: ReadonlyArray<string>) {
    if (yield* decideBy(lines[0] ?? "")) return
    for (const line of lines) {
      if (line.trim() === "/cancel") yield* runs.cancel(conversationId)
      else if (line.trim() !== "") yield* output.tell("the turn is not over yet; /cancel stops it")
    }
  })

  /** Shows a turn to its end. */
  const follow = (events: Stream.Stream<AgentEvent, AidreamError>): Effect.Effect<Outcome> =>
    Effect.suspend(() => {
      let outcome: TurnOutcome = "truncated"
      let undelivered = false
      let nothingOpen = false
      const take = (event: AgentEvent) => {
        switch (event._tag) {
          case "RunOpened":
            isNew = false
            break
          case "CallSettled":
            undelivered ||= event.delivery === "kept"
            break
          case "ResumeDeferred":
            undelivered = event.reason === "conflict" || event.reason === "unreachable"
            nothingOpen ||= codeOfRefusal(event.error) === "user_request_not_found"
            break
          case "TurnEnded":
            outcome = nothingOpen ? "idle" : event.outcome
            break
        }
        return output.event(event)
      }
      return Stream.runForEach(events, take).pipe(
        Effect.map(
          (): Outcome => ({
            _tag: "Ended",
            outcome,
            lost: outcome === "truncated" || (outcome === "paused" && undelivered)
          })
        ),
        Effect.catch((error) => Effect.succeed<Outcome>({ _tag: "Refused", error })),
        input.while(takeLines)
      )
    })

  /** Goes on with what is left of the last turn. */
  const reopen = Effect.gen(function* () {
    const pending = yield* Effect.result(api.pendingCalls(conversationId))
    if (pending._tag === "Failure") return { _tag: "Refused", error: pending.failure } satisfies Outcome
    const missing = () =>
      pending.success.map(({ tool_name: name }) => name).filter((name) => library.lookup(name) === undefined)
    if (missing().length > 0) {
      // Answered now, such a call would fail for want of its tool.
      yield* output.fact({ event: "waiting", tools: missing() }, `waiting for ${missing().join(", ")} to come back`)
      yield* waitUntil(() => missing().length === 0, RECONNECT_PATIENCE)
    }
    return yield* follow(runs.open(conversationId, { mode, resume: true }))
  })

  /** Looks for a turn that was lost on the way until it is found, or it is time to give up. */
  const persist = Effect.fnUntraced(function* (first: Outcome) {
    let last = first
    for (const pause of REOPENINGS) {
      if (!isLost(last)) break
      yield* output.fact({ event: "lost" }, "· the connection was lost; trying to go on")
      yield* input.while(takeLines)(Effect.sleep(pause))
      last = yield* reopen
    }
    return last
  })

  /** One message and its whole turn. */
  const send = Effect.fnUntraced(function* (message: string) {
    const first = yield* follow(runs.run({ agentId, conversationId, isNew, message, mode }))
    // A message that may have arrived is never sent a second time.
    return first._tag === "Refused" ? first : yield* persist(first)
  })

  /** Tells how it came out. Fails when that ends the chat. */
  const settle = Effect.fnUntraced(function* (outcome: Outcome) {
    const { code, message } = verdictOn(outcome, options.conversation)
    if (outcome._tag === "Refused") {
      const { endpoint, reason, status } = outcome.error
      const refusal = codeOfRefusal(outcome.error)
      yield* output.fact({ event: "refused", endpoint, status, code: refusal, problem: reason.message })
    }
    if (code === 0) return
    if (options.message === undefined && input.interactive) return yield* output.tell(message)
    return yield* new ChatExit({ code, message })
  })

  const converse = Effect.gen(function* () {
    while (true) {
      if (input.interactive) yield* output.prompt
      const line = yield* input.next
      if (line === undefined || line.trim() === "/quit") return
      if (line.trim() === "") continue
      if (line.trim() === "/cancel") yield* runs.cancel(conversationId)
      else yield* settle(yield* send(line))
    }
  })

  yield* Stream.runForEach(bridge.events, (event) => {
    if (event._tag === "ToolsRegistered") {
      const { namespace, names } = event
      return output.fact({ event: "tools_registered", namespace, names }, `· ${namespace} offers ${names.join(", ")}`)
    }
    if (event._tag !== "SessionClosed") return Effect.void
    const { namespace, reason } = event
    return output.fact({ event: "session_closed", namespace, reason }, `· ${namespace} has gone: ${reason}`)
  }).pipe(Effect.forkScoped({ startImmediately: true }))

  yield* output.fact(
    { event: "conversation", conversationId, new: isNew },
    `conversation ${conversationId}${isNew ? "" : " goes on"}`
  )
  yield* awaitApplications
  if (options.continued) yield* settle(yield* persist(yield* reopen))
  yield* options.message === undefined ? converse : Effect.flatMap(send(options.message), settle)
}, Effect.scoped)

/** Whether a later attempt may find the turn. */
const isLost = (outcome: Outcome): boolean => (outcome._tag === "Refused" ? outcome.error.isTransient : outcome.lost)

/** The backend's own word for why it refused. */
const codeOfRefusal = (error: AidreamError | undefined) =>
  error?.reason._tag === "Refused" ? error.reason.error.code : undefined

/** What an outcome means to whoever started the chat. */
const verdictOn = (outcome: Outcome, conversation: string): { readonly code: ExitCode; readonly message: string } => {
  if (outcome._tag === "Ended") {
    const code = codeOf(outcome.outcome)
    const goOn = `it goes on with --conversation ${conversation}`
    return {
      code,
      message: code === 4 ? `the turn is not over; ${goOn}` : `the turn ${verbs[outcome.outcome] ?? "ended"}`
    }
  }
  const { reason } = outcome.error
  const waits =
    reason._tag === "TurnSuspended" ||
    (reason._tag === "Refused" && reason.error.status === 409 && reason.error.code !== "conversation_exists")
  if (waits) return { code: 4, message: `the last turn is not over: ${reason.message}` }
  if (reason._tag === "CredentialUnavailable") return { code: 1, message: reason.message }
  const what = reason._tag === "Unreachable" ? "the backend cannot be reached" : "the backend refused"
  return { code: 2, message: `${what}: ${reason.message}` }
}

const verbs: Partial<Record<TurnOutcome, string>> = {
  cancelled: "was cancelled",
  failed: "failed"
}
