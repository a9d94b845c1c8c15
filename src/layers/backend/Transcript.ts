import { Effect, Schema } from "effect"
import { Prompt } from "effect/ai"
import type { UserRequestId } from "../../domain/aidream/Ids.ts"
import type { StoredCall, Transcript } from "./Ledger.ts"

const decodeMessage = Schema.decodeUnknownEffect(Prompt.Message)

/** A message as the ledger keeps it. */
export const encodeMessage = Schema.encodeSync(Prompt.Message)

/**
 * The conversation as the model sees it (part 10.9): messages in order of position,
 * every tool call followed by exactly one result, out of the ledger.
 */
export const rebuild = Effect.fnUntraced(function* (transcript: Transcript, current: UserRequestId) {
  const messages: Array<Prompt.Message> = []
  for (const { content } of transcript.messages) {
    // What the ledger holds was encoded by the same schema.
    const message = yield* Effect.orDie(decodeMessage(content))
    messages.push(message)
    if (message.role === "assistant") {
      const results = callsOf(message).map((call) => resultOf(call, transcript.calls.get(call.id), current))
      if (results.length > 0) messages.push(Prompt.toolMessage({ content: results }))
    }
  }
  return messages
})

/** The calls of an answer that are not the provider's own. */
export const callsOf = (message: Prompt.AssistantMessage): ReadonlyArray<Prompt.ToolCallPart> =>
  message.content.filter((part) => part.type === "tool-call").filter((part) => part.providerExecuted !== true)

/** What the model reads as the result of a call. */
export const resultPart = (
  call: { readonly id: string; readonly name: string },
  outcome: {
    readonly isError: boolean
    readonly output: unknown
    readonly errorType?: string | undefined
    readonly errorMessage?: string | undefined
  }
): Prompt.ToolResultPart =>
  Prompt.toolResultPart({
    id: call.id,
    name: call.name,
    isFailure: outcome.isError,
    result: outcome.isError
      ? (outcome.output ?? outcome.errorMessage ?? outcome.errorType ?? "the call failed")
      : (outcome.output ?? null),
    providerExecuted: false
  })

const resultOf = (
  call: Prompt.ToolCallPart,
  row: StoredCall | undefined,
  current: UserRequestId
): Prompt.ToolResultPart => {
  if (row !== undefined && (row.status === "completed" || row.status === "error")) {
    return resultPart(call, { ...row, isError: row.status === "error" })
  }
  // Only another, still paused turn of the conversation can have left a call open.
  const note =
    row !== undefined && row.userRequestId !== current
      ? "This call still waits for the application. Its result is not known yet."
      : "No result was recorded for this call."
  return resultPart(call, { isError: true, output: null, errorMessage: note })
}

/** A user's message out of `user_input`: text, or content parts. Parts the model has no type for become text. */
export const userMessage = (input: string | ReadonlyArray<unknown>): Prompt.UserMessage =>
  Prompt.userMessage({
    content:
      typeof input === "string"
        ? [Prompt.textPart({ text: input })]
        : input.map((part) => {
            const known = decodePart(part)
            return known._tag === "Some" ? known.value : Prompt.textPart({ text: JSON.stringify(part) })
          })
  })

const decodePart = Schema.decodeUnknownOption(Prompt.UserMessagePart)
