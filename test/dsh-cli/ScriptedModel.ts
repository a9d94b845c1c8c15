/**
 * A model endpoint on loopback that follows a script, in the wire format of the
 * harness's own adapter: chat completions, streamed as server-sent events.
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Schema } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"

const Completion = Schema.Struct({
  tools: Schema.optionalKey(Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String }) }))),
  messages: Schema.Array(Schema.Struct({ role: Schema.String, content: Schema.Unknown }))
})

type Answer = { readonly text: string } | { readonly tool: string; readonly args: object }

const streamed = (answer: Answer): string => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason }]
  })
  const call = (fn: object, rest: object = {}) => chunk({ tool_calls: [{ index: 0, ...rest, function: fn }] })
  const id = `call_${crypto.randomUUID()}`
  const body =
    "text" in answer
      ? [chunk({ content: answer.text }), chunk({}, "stop")]
      : [
          call({ name: answer.tool, arguments: "" }, { id, type: "function" }),
          // Split as a real model's arguments are: the adapter joins the pieces.
          call({ arguments: JSON.stringify(answer.args).slice(0, 5) }),
          call({ arguments: JSON.stringify(answer.args).slice(5) }),
          chunk({}, "tool_calls")
        ]
  const usage = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }
  return [...body, usage]
    .map((event) => `data: ${JSON.stringify(event)}\n\n`)
    .join("")
    .concat("data: [DONE]\n\n")
}

/**
 * Calls `tool` once, as soon as it is offered, and closes with `FINAL` and the text of
 * its result. Until then it looks at the list of clients, as a headless run begins
 * before the application had the time to connect.
 */
export const scriptedModel = Effect.fnUntraced(function* (tool: string, args: object) {
  const offered: Array<ReadonlyArray<string>> = []
  let called = false

  const next = Effect.fnUntraced(function* (names: ReadonlyArray<string>, results: ReadonlyArray<unknown>) {
    if (called) return { text: `FINAL ${results.at(-1)}` }
    if (!names.includes(tool)) {
      yield* Effect.sleep("50 millis")
      return { tool: "frontend_tools_list_clients", args: {} }
    }
    called = true
    return { tool, args }
  })

  const handler = Effect.gen(function* () {
    const { messages, tools = [] } = yield* HttpServerRequest.schemaBodyJson(Completion)
    const names = tools.map((offer) => offer.function.name)
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content)
    // Without tools it is the harness asking for the title of its session.
    if (names.length > 0) offered.push(names)
    const answer: Answer = names.length === 0 ? { text: "A title" } : yield* next(names, results)
    return HttpServerResponse.text(streamed(answer), { contentType: "text/event-stream" })
  })

  const server = yield* NodeHttpServer.make(createServer, { host: "127.0.0.1", port: 0, gracefulShutdownTimeout: 0 })
  yield* server.serve(Effect.orDie(handler))
  return { url: HttpServer.formatAddress(server.address), offered }
})
