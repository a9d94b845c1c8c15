import { Effect, FileSystem, Layer, Result, Schema, Stream } from "effect"
import { AiError, LanguageModel, type Prompt, type Response } from "effect/ai"
import { CatalogTool } from "./ToolCatalog.ts"

/** A tool call the script makes. Without an id it gets one from its place in the conversation. */
export const ScriptedCall = Schema.Struct({
  tool: Schema.String,
  arguments: Schema.optionalKey(Schema.Unknown),
  id: Schema.optionalKey(Schema.String)
})

/** One answer: text, reasoning, calls, or a failure of the provider. */
export const ScriptedAnswer = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  reasoning: Schema.optionalKey(Schema.String),
  calls: Schema.optionalKey(Schema.Array(ScriptedCall)),
  fail: Schema.optionalKey(Schema.String),
  /** Milliseconds of thinking before the answer. */
  delay: Schema.optionalKey(Schema.Natural)
})
export type ScriptedAnswer = typeof ScriptedAnswer.Type

/**
 * A script: answers per user message. `when` is looked for in the newest user message;
 * the first rule that fits, or has no `when`, gives its answers one after the other,
 * and says its last one again when it runs out.
 */
export const Script = Schema.Struct({
  /** Tools of the demonstration server's catalog; the model itself does not look at them. */
  catalog: Schema.optionalKey(Schema.Array(CatalogTool)),
  rules: Schema.NonEmptyArray(
    Schema.Struct({
      when: Schema.optionalKey(Schema.String),
      answers: Schema.NonEmptyArray(ScriptedAnswer)
    })
  )
})
export type Script = typeof Script.Type

/** What a script sees when it is asked. */
export interface ScriptedRequest {
  readonly prompt: Prompt.Prompt
  /** Names of the tools it may call. */
  readonly tools: ReadonlyArray<string>
  /** The newest user message. */
  readonly userText: string
  /** Answers given since that message. */
  readonly step: number
  /** Messages before this answer, over the whole conversation. */
  readonly position: number
}

/**
 * A model that says what it is told to: deterministic, offline and stateless, so that
 * it goes on after a restart where the conversation stands.
 */
export const make = (answer: (request: ScriptedRequest) => ScriptedAnswer) =>
  LanguageModel.make({
    generateText: (options) =>
      Effect.flatMap(respond(options, answer), ({ parts, pause }) => Effect.as(pause, parts.flatMap(whole))),
    streamText: (options) =>
      Stream.unwrap(
        Effect.map(respond(options, answer), ({ parts, pause }) =>
          Stream.concat(Stream.drain(Stream.fromEffect(pause)), Stream.fromIterable(parts))
        )
      )
  })

/** The model of a function. */
export const layer = (answer: (request: ScriptedRequest) => ScriptedAnswer) =>
  Layer.effect(LanguageModel.LanguageModel, make(answer))

/** The model of a script. */
export const layerScript = (script: Script) => layer(fromScript(script))

const decodeScript = Schema.decodeUnknownEffect(Schema.fromJsonString(Script))

/** A script out of a JSON file. */
export const readScript = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  return yield* decodeScript(yield* files.readFileString(path))
})

/** The model of a script in a JSON file. */
export const layerFile = (path: string) => Layer.unwrap(Effect.map(readScript(path), layerScript))

const spoken = /^\s*call\s+(\S+)\s*(\{[\s\S]*\})?\s*$/

/**
 * A model for trying things out: `call <tool> {"json": "arguments"}` calls the tool and
 * then says what came back; to anything else it answers with the tools it has.
 */
export const layerDemo = layer(({ prompt, step, tools, userText }) => {
  const [, tool, args] = spoken.exec(userText) ?? []
  if (tool !== undefined && step === 0) {
    return {
      calls: [
        {
          tool,
          arguments: Result.getOrElse(
            Result.try((): unknown => JSON.parse(args ?? "{}")),
            () => ({})
          )
        }
      ]
    }
  }
  if (tool !== undefined) {
    const last = prompt.content.at(-1)
    const results = last?.role === "tool" ? last.content.filter((part) => part.type === "tool-result") : []
    return { text: `${tool} answered: ${results.map(({ result }) => JSON.stringify(result)).join(", ")}` }
  }
  return {
    text:
      tools.length === 0
        ? "I have no tools. Connect an application that offers some."
        : `I have these tools: ${tools.join(", ")}. Say: call ${tools[0]} {}`
  }
})

const fromScript =
  (script: Script) =>
  ({ step, userText }: ScriptedRequest): ScriptedAnswer => {
    const rule = script.rules.find(({ when }) => when === undefined || userText.includes(when)) ?? script.rules[0]
    return rule.answers[Math.min(step, rule.answers.length - 1)] ?? rule.answers[0]
  }

const respond = Effect.fnUntraced(function* (
  { prompt, tools }: LanguageModel.ProviderOptions,
  answer: (request: ScriptedRequest) => ScriptedAnswer
) {
  const lastUser = prompt.content.findLastIndex(({ role }) => role === "user")
  const since = prompt.content.slice(lastUser + 1)
  const step = since.filter(({ role }) => role === "assistant").length
  const said = answer({
    prompt,
    tools: tools.map(({ name }) => name),
    userText: textOf(prompt.content[lastUser]),
    step,
    position: prompt.content.length
  })
  if (said.fail !== undefined) {
    return yield* AiError.make({
      module: "ScriptedModel",
      method: "respond",
      reason: new AiError.InternalProviderError({ description: said.fail })
    })
  }
  return {
    parts: partsOf(said, prompt.content.length),
    pause: said.delay === undefined ? Effect.void : Effect.sleep(said.delay)
  }
})

const textOf = (message: Prompt.Message | undefined): string =>
  message?.role === "user"
    ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
    : ""

/** Pieces a text is streamed in: words with the space after them. */
const pieces = (text: string): ReadonlyArray<string> => text.match(/\S+\s*|\s+/g) ?? []

const partsOf = (said: ScriptedAnswer, position: number): ReadonlyArray<Response.StreamPartEncoded> => [
  ...(said.reasoning === undefined
    ? []
    : [
        { type: "reasoning-start" as const, id: "reasoning" },
        ...pieces(said.reasoning).map((delta) => ({ type: "reasoning-delta" as const, id: "reasoning", delta })),
        { type: "reasoning-end" as const, id: "reasoning" }
      ]),
  ...(said.text === undefined
    ? []
    : [
        { type: "text-start" as const, id: "text" },
        ...pieces(said.text).map((delta) => ({ type: "text-delta" as const, id: "text", delta })),
        { type: "text-end" as const, id: "text" }
      ]),
  ...(said.calls ?? []).map((call, index) => ({
    type: "tool-call" as const,
    id: call.id ?? `call_${position}_${index}`,
    name: call.tool,
    params: call.arguments ?? {}
  })),
  {
    type: "finish",
    reason: (said.calls ?? []).length > 0 ? "tool-calls" : "stop",
    usage: { inputTokens: { total: position }, outputTokens: { total: pieces(said.text ?? "").length } },
    response: undefined
  }
]

/** The part of a whole answer that a streamed part stands for. */
const whole = (part: Response.StreamPartEncoded): Array<Response.PartEncoded> => {
  switch (part.type) {
    case "text-delta":
      return [{ type: "text", text: part.delta }]
    case "reasoning-delta":
      return [{ type: "reasoning", text: part.delta }]
    case "tool-call":
    case "finish":
      return [part]
    default:
      return []
  }
}
