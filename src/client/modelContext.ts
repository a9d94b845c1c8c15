/// <reference lib="esnext.disposable" preserve="true" />
import { TOOL_NAME_PATTERN } from "../domain/bridge/ToolName.ts"
import { describeThrown } from "./answer.ts"
import { FrontendToolsError } from "./FrontendToolsError.ts"
import type { CallContext, FrontendToolsClient, ToolRegistration, WireJsonSchema } from "./promise.ts"

/** A tool as the browser's model-context API lists it. */
export interface ModelContextTool {
  /** May hold dots, and be twice as long as on the wire. */
  readonly name: string
  readonly description: string
  /** JSON Schema: as JSON text from Chrome, as an object from polyfills. */
  readonly inputSchema?: unknown
  readonly annotations?: { readonly readOnlyHint?: boolean } | null | undefined
}

/**
 * What the mirror needs of `document.modelContext` (WebMCP) or of a polyfill of it.
 * `executeTool` is an extension that not every implementation has.
 */
export interface ModelContext<T extends ModelContextTool = ModelContextTool> {
  getTools(): Promise<ReadonlyArray<T>> | ReadonlyArray<T>
  /** Takes the arguments as JSON text; gives the result, or its text. */
  executeTool?(tool: T, input: string, options?: { readonly signal?: AbortSignal }): Promise<unknown> | unknown
  addEventListener(type: "toolchange", listener: () => void): void
  removeEventListener(type: "toolchange", listener: () => void): void
}

/** A running mirror. */
export interface ModelContextMirror {
  /** Settles when the tools of this moment are mirrored; rejects when the API fails. */
  readonly synced: () => Promise<void>
  /** Takes the mirrored tools back and stops following. */
  readonly stop: () => void
  readonly [Symbol.dispose]: () => void
}

const MAX_NAME_LENGTH = 64

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const schemaOf = (inputSchema: unknown): WireJsonSchema => {
  const schema = typeof inputSchema === "string" ? parsed(inputSchema) : inputSchema
  return isRecord(schema) ? schema : { type: "object" }
}

/** The value of a JSON text that says exactly the same: a tool's own text may only look like one. */
const unquoted = (text: string): unknown => {
  const value = parsed(text)
  return JSON.stringify(value) === text ? value : text
}

const textOf = (content: ReadonlyArray<unknown>): string =>
  content.flatMap((part) => (isRecord(part) && typeof part.text === "string" ? [part.text] : [])).join("\n")

/** What the tool answered. Some answer in the shape of MCP, where a failure is a result, too. */
const resultOf = (answer: unknown): unknown => {
  const result = typeof answer === "string" ? unquoted(answer) : answer
  // Chrome's text of a tool that gave nothing.
  if (result === undefined || result === "undefined") return null
  if (!isRecord(result) || !Array.isArray(result.content)) return result
  if (result.isError === true) throw new FrontendToolsError("internal", textOf(result.content) || "the tool failed")
  return result.structuredContent ?? result
}

/** Where the tool comes from: the list holds those of frames, too. */
const isOwn = (tool: object): boolean => {
  const source: unknown = Reflect.get(tool, "source") ?? Reflect.get(tool, "window")
  return source === undefined || source === null || source === globalThis
}

/**
 * The tools by the name they get on the wire, which has fewer characters than the
 * browser's and each only once. The page's own tools come before those of its frames.
 */
const named = <T extends ModelContextTool>(tools: ReadonlyArray<T>): Map<string, T> => {
  const byName = new Map<string, T>()
  for (const tool of [...tools.filter(isOwn), ...tools.filter((other) => !isOwn(other))]) {
    const base = TOOL_NAME_PATTERN.test(tool.name)
      ? tool.name
      : tool.name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME_LENGTH)
    let name = base
    for (let count = 2; byName.has(name); count++) {
      const suffix = `_${count}`
      name = base.slice(0, MAX_NAME_LENGTH - suffix.length) + suffix
    }
    byName.set(name, tool)
  }
  return byName
}

/**
 * Registers with the bridge whatever tools the page has registered with the browser's
 * model-context API, and follows additions, changes and removals. A tool with
 * `readOnlyHint` is a read tool; every other one needs a person's approval per call.
 *
 * Throws when the implementation cannot execute tools. `onRefused` of the client hears
 * of tools that the bridge does not take.
 */
export const mirrorModelContext = <T extends ModelContextTool>(
  modelContext: ModelContext<T>,
  client: Pick<FrontendToolsClient, "registerTool">
): ModelContextMirror => {
  if (typeof modelContext.executeTool !== "function") {
    throw new FrontendToolsError("internal", "this browser's model context has no executeTool: load a polyfill of it")
  }
  const mirrored = new Map<string, { readonly text: string; readonly registration: ToolRegistration }>()
  // What is called is the object of the latest list: the browser binds it to its registration.
  let latest = new Map<string, T>()
  let stopped = false

  const execute = async (name: string, args: unknown, { signal }: CallContext) => {
    const tool = latest.get(name)
    if (tool === undefined) throw new FrontendToolsError("unknown_tool", `the page has no tool "${name}" any more`)
    return resultOf(await modelContext.executeTool?.(tool, JSON.stringify(args ?? {}), { signal }))
  }

  const unregister = (name: string) => {
    mirrored.get(name)?.registration.unregister()
    mirrored.delete(name)
  }

  const sync = async () => {
    const tools = await modelContext.getTools()
    if (stopped) return
    latest = named(tools)
    for (const name of Array.from(mirrored.keys())) if (!latest.has(name)) unregister(name)
    for (const [name, { annotations, description, inputSchema }] of latest) {
      const spec = {
        name,
        description,
        parametersSchema: schemaOf(inputSchema),
        readOnly: annotations?.readOnlyHint === true
      }
      const text = JSON.stringify(spec)
      if (mirrored.get(name)?.text === text) continue
      const registration = client.registerTool({ ...spec, execute: (args, call) => execute(name, args, call) })
      mirrored.set(name, { text, registration })
    }
  }

  let last = Promise.resolve()
  let queued = false
  const begin = () => {
    queued = false
    return sync()
  }
  // One after the other: an older list must not overtake a newer one. Changes that come together need one look.
  const follow = () => {
    if (queued) return
    queued = true
    last = last.then(begin, begin)
    last.catch(() => {})
  }
  modelContext.addEventListener("toolchange", follow)
  follow()

  const stop = () => {
    stopped = true
    modelContext.removeEventListener("toolchange", follow)
    for (const name of Array.from(mirrored.keys())) unregister(name)
  }

  return {
    synced: () =>
      last.catch((error) => {
        throw new FrontendToolsError("internal", `the page's model context failed: ${describeThrown(error)}`)
      }),
    stop,
    [Symbol.dispose]: stop
  }
}
