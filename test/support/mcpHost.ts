import { Context, Effect, Layer, Logger, Stdio } from "effect"
import { McpHost, type McpHostOptions } from "../../src/layers/host/McpHost.ts"
import { ToolHost } from "../../src/layers/host/ToolHost.ts"
import { inMemory, type McpWire } from "./McpWire.ts"

/** A host in memory, what it logged, and its client's end of the wire. */
export const start = Effect.fnUntraced(function* (options: Partial<McpHostOptions> = {}) {
  const { end, stdio, wire } = yield* inMemory
  const logged: Array<string> = []
  const layer = McpHost.layer({ version: "1.2.3", ...options }).pipe(
    Layer.provide(Layer.succeed(Stdio.Stdio, stdio)),
    Layer.provide(Logger.layer([Logger.make(({ message }) => logged.push(String(message)))]))
  )
  const context = yield* Layer.build(layer)
  return { wire, end, logged, host: Context.get(context, ToolHost), mcp: Context.get(context, McpHost) }
})

export const canAsk = { elicitation: { form: {} } }

export const listNames = (wire: McpWire, params?: object) =>
  wire
    .request("tools/list", params)
    .pipe(Effect.map(({ result }) => result.tools.map((tool: { readonly name: string }) => tool.name)))

export const call = (wire: McpWire, name: string, args: object = {}, more: object = {}) =>
  Effect.map(wire.request("tools/call", { name, arguments: args, ...more }), ({ result }) => result)

export const errorText = (text: string) => ({ content: [{ type: "text", text: `Error: ${text}` }], isError: true })
