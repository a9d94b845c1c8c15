import { describeThrown } from "./answer.ts"
import { FrontendToolsError } from "./FrontendToolsError.ts"
import type { CallContext, FrontendTool, FrontendToolsClient, ToolRegistration, WireJsonSchema } from "./promise.ts"

/** A tool as the browser's model-context API describes it. Chrome up to 159 gives the schema as JSON text. */
export interface ModelContextTool {
  readonly name: string
  readonly description: string
  readonly inputSchema?: unknown
  readonly annotations?: { readonly readOnlyHint?: boolean } | null | undefined
}

/**
 * What the mirror needs of `document.modelContext` (WebMCP) or of a polyfill of it.
 * Both calls have an answer in the API and in its polyfills; only the event is needed
 * to follow changes.
 */
export interface ModelContext<T extends ModelContextTool = ModelContextTool> {
  getTools(): Promise<ReadonlyArray<T>> | ReadonlyArray<T>
  /** Takes the arguments as JSON text; gives the result, or its JSON text. */
  executeTool(tool: T, input: string, options?: { readonly signal?: AbortSignal }): Promise<unknown> | unknown
  addEventListener(type: "toolchange", listener: () => void): void
  removeEventListener(type: "toolchange", listener: () => void): void
}

/** A running mirror. */
export interface ModelContextMirror {
  /** Settles when the tools of this moment are mirrored; rejects when the API fails. */
  readonly synced: () => Promise<void>
  /** Takes the mirrored tools back and stops following. */
  readonly stop: () => void
}

const isSchema = (value: unknown): value is WireJsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The browser's names know more characters than the wire. */
const rawNameOf = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64)

const schemaOf = (inputSchema: unknown): WireJsonSchema => {
  const schema = typeof inputSchema === "string" ? parsed(inputSchema) : inputSchema
  return isSchema(schema) ? schema : { type: "object" }
}

/**
 * Registers with the bridge whatever tools the page has registered with the browser's
 * model-context API, and follows additions, changes and removals. A tool with
 * `readOnlyHint` is a read tool; every other one needs a person's approval per call.
 */
export const mirrorModelContext = <T extends ModelContextTool>(
  modelContext: ModelContext<T>,
  client: Pick<FrontendToolsClient, "registerTool">
): ModelContextMirror => {
  const mirrored = new Map<string, { readonly text: string; readonly registration: ToolRegistration }>()
  // What is called is the object of the latest list: the browser binds it to its registration.
  let latest = new Map<string, T>()
  let stopped = false

  const execute = async (name: string, args: unknown, { signal }: CallContext) => {
    const tool = latest.get(name)
    if (tool === undefined) throw new FrontendToolsError("unknown_tool", `the page has no tool "${name}" any more`)
    const result = await modelContext.executeTool(tool, JSON.stringify(args ?? {}), { signal })
    return typeof result === "string" ? parsed(result) : (result ?? null)
  }

  const sync = async () => {
    const tools = await modelContext.getTools()
    if (stopped) return
    latest = new Map(tools.map((tool) => [tool.name, tool]))
    for (const [name, { registration }] of mirrored) {
      if (latest.has(name)) continue
      mirrored.delete(name)
      registration.unregister()
    }
    for (const { annotations, description, inputSchema, name } of latest.values()) {
      const spec = {
        name: rawNameOf(name),
        description,
        parametersSchema: schemaOf(inputSchema),
        readOnly: annotations?.readOnlyHint === true
      }
      const text = JSON.stringify(spec)
      if (mirrored.get(name)?.text === text) continue
      const tool: FrontendTool = { ...spec, execute: (args, call) => execute(name, args, call) }
      mirrored.set(name, { text, registration: client.registerTool(tool) })
    }
  }

  // One after the other: an older list must not overtake a newer one.
  let last = Promise.resolve()
  const follow = () => {
    last = last.then(sync, sync)
    last.catch(() => {})
  }
  modelContext.addEventListener("toolchange", follow)
  follow()

  return {
    synced: () =>
      last.catch((error) => {
        throw new FrontendToolsError("internal", `the page's model context failed: ${describeThrown(error)}`)
      }),
    stop: () => {
      stopped = true
      modelContext.removeEventListener("toolchange", follow)
      for (const { registration } of mirrored.values()) registration.unregister()
      mirrored.clear()
    }
  }
}
