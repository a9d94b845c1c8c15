import { assert, describe, it } from "@effect/vitest"
import { type FrontendTool, FrontendToolsError, type ModelContextTool, mirrorModelContext } from "../../src/promise.ts"

interface PageTool extends ModelContextTool {
  readonly window?: unknown
  readonly run?: (input: string, signal: AbortSignal | undefined) => unknown
}

/** A model context as a page has it, whose list the test changes. */
const makeContext = (...tools: ReadonlyArray<PageTool>) => {
  const target = new EventTarget()
  const context = {
    tools,
    looks: 0,
    failing: false,
    getTools: async () => {
      context.looks++
      if (context.failing) throw new Error("no tools today")
      return context.tools
    },
    executeTool: (tool: PageTool, input: string, options?: { readonly signal?: AbortSignal }) =>
      tool.run?.(input, options?.signal),
    addEventListener: (type: "toolchange", listener: () => void) => target.addEventListener(type, listener),
    removeEventListener: (type: "toolchange", listener: () => void) => target.removeEventListener(type, listener),
    set: (...next: ReadonlyArray<PageTool>) => {
      context.tools = next
      target.dispatchEvent(new Event("toolchange"))
    }
  }
  return context
}

/** What of a client the mirror uses. */
const makeClient = () => {
  const tools = new Map<string, FrontendTool>()
  const log: Array<string> = []
  return {
    tools,
    log,
    registerTool: (tool: FrontendTool) => {
      tools.set(tool.name, tool)
      log.push(`+${tool.name}`)
      const unregister = () => {
        if (tools.get(tool.name) !== tool) return
        tools.delete(tool.name)
        log.push(`-${tool.name}`)
      }
      return { registered: Promise.resolve(tool.name), unregister, [Symbol.dispose]: unregister }
    },
    run: (name: string, args: unknown = {}, signal = new AbortController().signal) =>
      tools.get(name)?.execute(args, { callId: "1", name, signal })
  }
}

const tool = (name: string, extra: Partial<PageTool> = {}): PageTool => ({
  name,
  description: `does ${name}`,
  ...extra
})

const rejection = async (promise: unknown): Promise<unknown> => {
  try {
    await promise
  } catch (error) {
    return error
  }
  return assert.fail("it did not reject")
}

describe("mirrorModelContext", () => {
  it("mirrors what is there, with its schema and whether it only reads", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } } }
    const context = makeContext(
      tool("text", { inputSchema: JSON.stringify(schema, null, 2), annotations: { readOnlyHint: true } }),
      tool("object", { inputSchema: schema, annotations: { readOnlyHint: false } }),
      tool("none", { annotations: null }),
      tool("broken", { inputSchema: "{" })
    )
    const client = makeClient()
    await mirrorModelContext(context, client).synced()
    assert.deepStrictEqual(
      Array.from(client.tools.values(), ({ execute: _, ...spec }) => spec),
      [
        { name: "text", description: "does text", parametersSchema: schema, readOnly: true },
        { name: "object", description: "does object", parametersSchema: schema, readOnly: false },
        { name: "none", description: "does none", parametersSchema: { type: "object" }, readOnly: false },
        { name: "broken", description: "does broken", parametersSchema: { type: "object" }, readOnly: false }
      ]
    )
  })

  it("follows additions, changes and removals, and touches nothing else", async () => {
    const context = makeContext(tool("a"), tool("b"))
    const client = makeClient()
    const mirror = mirrorModelContext(context, client)
    await mirror.synced()
    context.set(tool("b"), tool("c"))
    await mirror.synced()
    context.set(tool("b", { description: "does more" }), tool("c"))
    await mirror.synced()
    assert.deepStrictEqual(client.log, ["+a", "+b", "-a", "+c", "+b"])
    assert.strictEqual(client.tools.get("b")?.description, "does more")
  })

  it("looks once at changes that come together", async () => {
    const context = makeContext()
    const mirror = mirrorModelContext(context, makeClient())
    await mirror.synced()
    for (let count = 1; count <= 50; count++) context.set(...Array.from({ length: count }, (_, i) => tool(`t${i}`)))
    await mirror.synced()
    assert.strictEqual(context.looks, 2)
  })

  it("calls the tool as it is now, with JSON text and the caller's signal", async () => {
    const context = makeContext(tool("a", { run: () => "old" }))
    const client = makeClient()
    const mirror = mirrorModelContext(context, client)
    await mirror.synced()
    const seen: Array<unknown> = []
    context.set(
      tool("a", {
        run: (input, signal) => {
          seen.push(input, signal?.aborted)
          return "new"
        }
      })
    )
    await mirror.synced()
    const controller = new AbortController()
    controller.abort()
    assert.strictEqual(await client.run("a", { q: 1 }, controller.signal), "new")
    assert.strictEqual(await client.run("a", undefined), "new")
    assert.deepStrictEqual(seen, ['{"q":1}', true, "{}", false])
  })

  it("reads what tools answer: JSON text, plain text, nothing, the shapes of MCP", async () => {
    const answers: ReadonlyArray<readonly [unknown, unknown]> = [
      ['{"got":[1]}', { got: [1] }],
      ["hello", "hello"],
      // A text that only looks like a number must not lose digits.
      ["12345678901234567890", "12345678901234567890"],
      ["undefined", null],
      [undefined, null],
      ["null", null],
      [{ plain: true }, { plain: true }],
      ['{"content":[{"type":"text","text":"x"}],"structuredContent":{"x":1}}', { x: 1 }],
      [{ content: [{ type: "text", text: "x" }] }, { content: [{ type: "text", text: "x" }] }]
    ]
    let answer: unknown
    const client = makeClient()
    await mirrorModelContext(makeContext(tool("a", { run: () => answer })), client).synced()
    for (const [given, read] of answers) {
      answer = given
      assert.deepStrictEqual(await client.run("a"), read, JSON.stringify(given))
    }
    answer = '{"content":[{"type":"text","text":"not logged in"}],"isError":true}'
    assert.deepInclude(await rejection(client.run("a")), { code: "internal", message: "not logged in" })
  })

  it("gives every tool a name that the wire takes, the page's own before its frames'", async () => {
    const long = "n".repeat(70)
    const context = makeContext(
      tool("same", { window: {}, description: "of a frame" }),
      tool("a.b"),
      tool("a_b"),
      tool(`${long}1`),
      tool(`${long}2`),
      tool("same", { window: globalThis, description: "of the page" })
    )
    const client = makeClient()
    await mirrorModelContext(context, client).synced()
    assert.deepStrictEqual(Array.from(client.tools.keys()), [
      "a_b",
      "a_b_2",
      "n".repeat(64),
      `${"n".repeat(62)}_2`,
      "same",
      "same_2"
    ])
    assert.strictEqual(client.tools.get("same")?.description, "of the page")
  })

  it("says that a tool has gone when the call was under way", async () => {
    const context = makeContext(tool("a"))
    const client = makeClient()
    const mirror = mirrorModelContext(context, client)
    await mirror.synced()
    const kept = client.tools.get("a")
    context.set()
    await mirror.synced()
    const gone = await rejection(kept?.execute({}, { callId: "1", name: "a", signal: new AbortController().signal }))
    assert.deepInclude(gone, { code: "unknown_tool", message: 'the page has no tool "a" any more' })
  })

  it("tells of an API that fails, and goes on with the next change", async () => {
    const context = makeContext()
    context.failing = true
    const client = makeClient()
    const mirror = mirrorModelContext(context, client)
    const error = await rejection(mirror.synced())
    assert.include(error instanceof FrontendToolsError && error.message, "no tools today")
    context.failing = false
    context.set(tool("a"))
    await mirror.synced()
    assert.deepStrictEqual(client.log, ["+a"])
  })

  it("takes everything back when it stops, and hears nothing more", async () => {
    const context = makeContext(tool("a"), tool("b"))
    const client = makeClient()
    const mirror = mirrorModelContext(context, client)
    {
      using _ = mirror
      await mirror.synced()
      context.set(tool("a"), tool("b"), tool("late"))
    }
    context.set(tool("c"))
    await mirror.synced()
    assert.deepStrictEqual(client.log, ["+a", "+b", "-a", "-b"])
    assert.strictEqual(client.tools.size, 0)
  })

  it("says at once when the browser cannot execute tools", () => {
    const { executeTool: _, ...context } = makeContext()
    assert.throws(() => mirrorModelContext(context, makeClient()), "has no executeTool")
  })
})
