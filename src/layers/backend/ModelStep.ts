import { Clock, Duration, Effect, Stream } from "effect"
import { type AiError, type LanguageModel, Prompt, type Response, Tool, Toolkit } from "effect/ai"
import { CallId } from "../../domain/aidream/Ids.ts"
import type { ChosenModel } from "./Models.ts"
import { RunFailure } from "./RunFailure.ts"
import type { RunStream } from "./RunStream.ts"
import type { ActiveTool } from "./ToolMerge.ts"

/** A tool call of a model. */
export interface ModelCall {
  /** Unique in the conversation, even where the provider's was not. */
  readonly id: CallId
  /** The name the model used. */
  readonly name: string
  readonly params: unknown
}

/** One answer of a model. */
export interface ModelAnswer {
  /** `undefined`: the model said nothing at all. */
  readonly message: Prompt.AssistantMessage | undefined
  readonly calls: ReadonlyArray<ModelCall>
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
}

/** What `tool_choice` may be. */
export type ToolChoice = LanguageModel.ToolChoice<string>

/**
 * Asks the model once and passes on what it says while it says it.
 *
 * A failure that may be temporary is tried again, with growing pauses; the reader is
 * told to discard what the failed attempt had said.
 */
export const askModel = Effect.fnUntraced(function* (options: {
  readonly chosen: ChosenModel
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly tools: ReadonlyArray<ActiveTool>
  readonly toolChoice: ToolChoice | undefined
  readonly retries: number
  readonly backoff: Duration.Input
  readonly stream: RunStream
  /** Whether a call id is in use in the conversation. */
  readonly isTaken: (id: string) => boolean
}): Effect.fn.Return<ModelAnswer, RunFailure> {
  const { stream } = options
  for (let attempt = 0; ; attempt++) {
    const answer = yield* ask(options).pipe(
      Effect.catchTag("AiError", (error) =>
        error.isRetryable && attempt < options.retries
          ? Effect.as(announceRetry(stream, error, options.backoff, attempt), undefined)
          : Effect.fail(new RunFailure({ type: "provider_error", text: describe(error) }))
      )
    )
    if (answer !== undefined) {
      if (attempt > 0) stream.emit({ _tag: "provider_retry", data: { state: "recovered" } })
      return answer
    }
  }
})

const ask = Effect.fnUntraced(function* (options: Parameters<typeof askModel>[0]) {
  const { stream } = options
  const parts: Array<Response.AnyPart> = []
  const calls: Array<ModelCall> = []
  let usage = { inputTokens: 0, outputTokens: 0 }

  const toolkit = Toolkit.make(
    ...options.tools.map((tool) =>
      Tool.dynamic(tool.wireName, { description: tool.description, parameters: tool.inputSchema })
    )
  )
  yield* options.chosen.model
    .streamText({
      prompt: Prompt.fromMessages(options.messages),
      toolkit,
      // The run decides who runs a call; an unknown or malformed one is answered, not fatal.
      disableToolCallResolution: true,
      toolCallValidation: "deferred",
      ...(options.tools.length === 0 || options.toolChoice === undefined ? {} : { toolChoice: options.toolChoice })
    })
    .pipe(
      Stream.runForEach((part) => {
        switch (part.type) {
          case "text-delta": {
            stream.emit({ _tag: "chunk", data: { text: part.delta } })
            break
          }
          case "reasoning-delta": {
            stream.emit({ _tag: "reasoning_chunk", data: { text: part.delta } })
            break
          }
          case "finish": {
            usage = {
              inputTokens: part.usage.inputTokens.total ?? 0,
              outputTokens: part.usage.outputTokens.total ?? 0
            }
            break
          }
          case "error": {
            return Effect.fail(new RunFailure({ type: "provider_error", text: "the provider reported an error" }))
          }
          case "tool-call": {
            if (part.providerExecuted === true) break
            const id = uniqueId(part.id, (taken) => options.isTaken(taken) || calls.some((call) => call.id === taken))
            calls.push({ id, name: part.name, params: part.params })
            parts.push({ ...part, id })
            return Effect.void
          }
        }
        parts.push(part)
        return Effect.void
      })
    )
  const message = Prompt.fromResponseParts(parts).content.find((each) => each.role === "assistant")
  return { message, calls, usage } satisfies ModelAnswer
})

// The ledger, the client's journal and the rebuilt prompt all find a call by its id alone.
const uniqueId = (id: string, isTaken: (id: string) => boolean): CallId => {
  const wanted = id === "" ? "call" : id
  let candidate = wanted
  for (let copy = 2; isTaken(candidate); copy++) candidate = `${wanted}-${copy}`
  return CallId.make(candidate)
}

/** Longest text of a provider's error that is passed on. */
const MAX_TEXT = 500

const describe = (error: AiError.AiError) => error.reason.message.slice(0, MAX_TEXT)

const announceRetry = Effect.fnUntraced(function* (
  stream: RunStream,
  error: AiError.AiError,
  backoff: Duration.Input,
  attempt: number
) {
  const pause = Duration.toMillis(backoff) * 2 ** attempt
  const retryAt = (yield* Clock.currentTimeMillis) + pause
  stream.emit({ _tag: "phase", data: { phase: "retrying" } })
  stream.emit({
    _tag: "provider_retry",
    data: {
      state: "scheduled",
      error_type: error.reason._tag,
      retry_at: new Date(retryAt).toISOString(),
      retry_delay: pause / 1000,
      discard_partial_output: true
    }
  })
  yield* Effect.sleep(pause)
  stream.emit({ _tag: "provider_retry", data: { state: "retrying_now", discard_partial_output: true } })
})
