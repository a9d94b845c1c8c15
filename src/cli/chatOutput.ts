/** How a chat tells what happens: as text for a person, or as JSON lines for a program. */
import { Context, Effect, Layer, Stdio, Stream } from "effect"
import { isJsonObject } from "../domain/aidream/Absent.ts"
import type { AgentEvent } from "../domain/aidream/AgentEvent.ts"
import type { StreamEvent } from "../domain/aidream/StreamEvent.ts"
import { writeEvent } from "../domain/aidream/StreamEvent.ts"
import { visible } from "../layers/host/ApprovalText.ts"

/** Something of the chat itself, beside the events of its turns. */
export interface ChatFact {
  readonly event: string
  readonly [field: string]: unknown
}

/**
 * The two outputs of a chat. Standard output has the model's text, or with `--json`
 * every event; standard error has what a person is told beside it.
 */
export class ChatOutput extends Context.Service<
  ChatOutput,
  {
    readonly event: (event: AgentEvent) => Effect.Effect<void>
    /** Tells a program the fact, and a person the text, if there is one. */
    readonly fact: (fact: ChatFact, text?: string) => Effect.Effect<void>
    /** Tells a person only, on standard error. */
    readonly tell: (text: string) => Effect.Effect<void>
    /** Puts up the prompt for the next message. */
    readonly prompt: Effect.Effect<void>
  }
>()("effect-frontend-tools/cli/ChatOutput") {
  static readonly layer = (json: boolean) =>
    Layer.effect(
      ChatOutput,
      Effect.gen(function* () {
        const stdio = yield* Stdio.Stdio
        const forPerson = yield* stdio.stdoutIsTerminal
        let midLine = false

        // A reader that has gone away is no fault of the chat.
        const put = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stdout()))
        const aside = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))

        /** Ends a line of the model's text before something else is told. */
        const settle = Effect.suspend(() => {
          if (!midLine) return Effect.void
          midLine = false
          return put("\n")
        })

        const say = (text: string) =>
          Effect.suspend(() => {
            midLine = !text.endsWith("\n")
            // A model's text must not steer the terminal, nor pass for a question of ours.
            return put(forPerson ? visible(text) : text)
          })

        // Between two notices of a script's run, the text on standard output stays in one piece.
        const tell = (text: string) => Effect.andThen(forPerson ? settle : Effect.void, aside(`${text}\n`))
        const line = (value: unknown) => put(`${JSON.stringify(value)}\n`)

        const show = (event: AgentEvent): Effect.Effect<void> => {
          if (event._tag === "Stream" && event.event._tag === "chunk") return say(event.event.data.text)
          const notice = noticeOf(event)
          return Effect.andThen(
            event._tag === "TurnEnded" ? settle : Effect.void,
            notice === undefined ? Effect.void : tell(notice)
          )
        }

        return ChatOutput.of({
          event: json ? (event) => line(jsonOf(event)) : show,
          fact: (fact, text) => (json ? line(fact) : text === undefined ? Effect.void : tell(text)),
          tell,
          prompt: aside("> ")
        })
      })
    )
}

const LONGEST = 300

/** A JSON value on one line, short enough to be read. */
const brief = (value: unknown): string => {
  const text = visible(JSON.stringify(value) ?? "null").replaceAll("\n", " ")
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

const oneLine = (text: string) => visible(text).replaceAll("\n", " ")

const noticeOf = (event: AgentEvent): string | undefined => {
  switch (event._tag) {
    case "Stream":
      return noticeOfStream(event.event)
    case "CallDelegated":
      return `· ${oneLine(event.delegation.toolName)} ${brief(event.delegation.arguments)}`
    case "CallLeft":
      return `· ${oneLine(event.toolName)} belongs to ${oneLine(event.owner)} and is left to it`
    case "CallFinished": {
      const { error_message: problem, is_error: failed, output, tool_name: name } = event.result
      return failed
        ? `· ${oneLine(name)} failed: ${oneLine(problem ?? "")}`
        : `· ${oneLine(name)} answered ${brief(output)}`
    }
    case "CallSettled":
      return event.delivery === "delivered"
        ? undefined
        : `· the answer was ${event.delivery === "kept" ? "not delivered, and is kept" : "refused"}: ${oneLine(event.problem ?? "")}`
    case "RunEnded":
      return event.suspended ? "· suspended until the calls are answered" : undefined
    case "RunOpened":
      return event.resumed ? "· resumed" : undefined
    case "ResumeDeferred":
      return event.reason === "superseded" || event.reason === "stale" ? undefined : `· not resumed: ${event.reason}`
    case "StreamProblem":
    case "ApprovalAsked":
    case "CallStarted":
    case "Resuming":
    case "TurnEnded":
      return undefined
  }
}

const noticeOfStream = (event: StreamEvent): string | undefined => {
  if (event._tag === "error") return `error: ${oneLine(event.data.user_message ?? event.data.message)}`
  // Tools of the backend itself; ours have events of their own.
  if (event._tag === "tool_event" && event.data.event === "tool_started") {
    const args = isJsonObject(event.data.data) ? event.data.data.arguments : undefined
    return `· ${oneLine(event.data.tool_name)} ${brief(args ?? {})} (on the backend)`
  }
  return undefined
}

const snake = (tag: string) => tag.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase()

/** One event as an object of a JSON line: its name in the spelling of the command line, and its fields. */
const jsonOf = (event: AgentEvent): ChatFact => {
  switch (event._tag) {
    case "Stream":
      return { event: "stream", line: writeEvent(event.event) }
    case "StreamProblem":
      return {
        event: "stream_problem",
        problem: event.item._tag,
        line: "line" in event.item ? event.item.line : event.item.value
      }
    case "ResumeDeferred":
      return { event: "resume_deferred", reason: event.reason, problem: event.error?.message }
    default: {
      const { _tag, ...fields } = event
      return { event: snake(_tag), ...fields }
    }
  }
}
