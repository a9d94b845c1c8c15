import { readFileSync } from "node:fs"
import { assert, describe, it, vi } from "@effect/vitest"
import WebSocket from "ws"
import { type CreateBridgeOptions, createBridge, ToolCallFailed } from "../../../src/index.ts"

const key = "a".repeat(64)

const tools = [
  { name: "list", description: "lists", readOnly: true, parametersSchema: { type: "object" } },
  {
    name: "add",
    description: "adds",
    parametersSchema: { type: "object", properties: { title: { type: "string" } }, required: ["title"] }
  },
  { name: "hang", description: "hangs", readOnly: true, parametersSchema: { type: "object" } }
]

/** An application as any program writes one; resolves when its tools are registered. */
const application = (url: string, withKey = key) =>
  new Promise<WebSocket>((resolve, reject) => {
    const socket = new WebSocket(url)
    socket.on("open", () => socket.send(JSON.stringify({ type: "hello", protocol: 5, key: withKey })))
    socket.on("error", reject)
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data))
      if (frame.type === "welcome") socket.send(JSON.stringify({ type: "register", tools }))
      if (frame.type === "registered") resolve(socket)
      if (frame.type === "error") reject(new Error(frame.message))
      if (frame.type === "call" && frame.name !== "hang") {
        const { args, callId, name } = frame
        socket.send(JSON.stringify({ type: "callResult", callId, ok: true, result: [name, args] }))
      }
    })
  })

const start = (options: CreateBridgeOptions = {}) =>
  createBridge({ port: 0, roster: "memory", logLevel: "None", staticClients: [{ namespace: "todo", key }], ...options })

const failing = (promise: Promise<unknown>) =>
  promise.then(
    () => assert.fail("did not reject"),
    (error: unknown) => error
  )

const reasonOf = async (promise: Promise<unknown>) => {
  const error = await failing(promise)
  return error instanceof ToolCallFailed ? error.reason : error
}

describe("createBridge", () => {
  it("lists and calls the tools of applications", async () => {
    await using bridge = await start()
    assert.strictEqual(bridge.url, `ws://127.0.0.1:${bridge.port}`)
    const socket = await application(bridge.url)
    assert.deepInclude(
      bridge.tools().find(({ name }) => name === "todo__list"),
      { label: "todo.list", namespace: "todo", access: "read", description: "lists" }
    )
    assert.deepStrictEqual(await bridge.call("todo__list"), ["list", {}])
    assert.deepStrictEqual(
      (await bridge.sessions()).map(({ namespace, toolCount }) => [String(namespace), toolCount]),
      [["todo", 3]]
    )
    socket.terminate()
  })

  it("refuses writes where nobody can be asked, and asks for each where somebody can", async () => {
    const questions: Array<string> = []
    await using silent = await start()
    await using asking = await start({
      approve: async ({ args, question }) => {
        questions.push(question)
        return JSON.stringify(args).includes("tea")
      }
    })
    await using broken = await start({ approve: () => Promise.reject(new Error("no screen")) })
    const sockets = []
    for (const { url } of [silent, asking, broken]) sockets.push(await application(url))
    assert.strictEqual(await reasonOf(silent.call("todo__add", { title: "tea" })), "NotAllowed")
    assert.strictEqual(await reasonOf(broken.call("todo__add", { title: "tea" })), "NotAllowed")
    assert.deepStrictEqual(await asking.call("todo__add", { title: "tea" }), ["add", { title: "tea" }])
    assert.strictEqual(await reasonOf(asking.call("todo__add", { title: "cake" })), "NotAllowed")
    assert.strictEqual(await reasonOf(asking.call("todo__add", { title: 1 })), "InvalidArguments")
    assert.strictEqual(questions.length, 2)
    for (const socket of sockets) socket.terminate()
  })

  it("gives up with the signal, and tells the approval", async () => {
    const aborted: Array<unknown> = []
    await using bridge = await start({
      approve: (_, signal) =>
        new Promise(() => signal.addEventListener("abort", () => aborted.push(signal.aborted), { once: true }))
    })
    const socket = await application(bridge.url)
    const giveUp = new Error("changed my mind")
    for (const [tool, args] of [
      ["todo__hang", {}],
      ["todo__add", { title: "tea" }]
    ] as const) {
      const controller = new AbortController()
      const calling = bridge.call(tool, args, { signal: controller.signal })
      await bridge.sessions()
      controller.abort(giveUp)
      assert.strictEqual(await failing(calling), giveUp)
      assert.strictEqual(await failing(bridge.call(tool, args, { signal: controller.signal })), giveUp)
    }
    assert.deepStrictEqual(aborted, [true])
    socket.terminate()
  })

  it("admits and revokes applications", async () => {
    await using bridge = await start({ staticClients: [] })
    const ownKey = "b".repeat(64)
    await failing(application(bridge.url, ownKey))
    await bridge.register("shop", ownKey)
    const socket = await application(bridge.url, ownKey)
    assert.deepStrictEqual(await bridge.call("shop__list"), ["list", {}])
    const closed = new Promise((resolve) => socket.on("close", resolve))
    await bridge.revoke("shop")
    await closed
    assert.strictEqual(await reasonOf(bridge.call("shop__list")), "Gone")
    assert.strictEqual(await reasonOf(bridge.register("not a name", ownKey)), "ApplicationFailed")
  })

  it("tells what happens, until it is closed", async () => {
    const bridge = await start()
    const seen: Array<string> = []
    const watching = (async () => {
      for await (const event of bridge.events()) seen.push(event._tag)
    })()
    await bridge.sessions()
    const socket = await application(bridge.url)
    await bridge.close()
    await watching
    assert.deepStrictEqual(seen.slice(0, 2), ["SessionOpened", "ToolsRegistered"])
    socket.terminate()
  })

  it("settles what is in flight when it is closed, and takes nothing afterwards", async () => {
    const bridge = await start()
    const socket = await application(bridge.url)
    const calling = reasonOf(bridge.call("todo__hang"))
    await bridge.sessions()
    const closed = new Promise<number>((resolve) => socket.on("close", resolve))
    await Promise.all([bridge.close(), bridge.close()])
    assert.strictEqual(await calling, "Disconnected")
    assert.strictEqual(await closed, 1001)
    assert.strictEqual(await reasonOf(bridge.call("todo__list")), "Disconnected")
    await failing(application(bridge.url))
  })

  it("rejects with the reason when it cannot start, and leaves nothing behind", async () => {
    await using bridge = await start()
    assert.include(String(await failing(start({ port: bridge.port }))), "EADDRINUSE")
    assert.include(String(await failing(start({ port: -1 }))), "port must be an integer")
    const twins = [1, 2].map((n) => ({ namespace: "todo", key: `key ${n}` }))
    assert.include(String(await failing(start({ staticClients: twins }))), 'namespace "todo" collides')
  })

  it("writes nothing to standard output, and to standard error what it is told to", async () => {
    const log = vi.spyOn(console, "log").mockImplementation(() => {})
    const error = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      for (const [logLevel, lines] of [
        ["None", 0],
        ["Info", 4]
      ] as const) {
        error.mockClear()
        const bridge = await start({ logLevel })
        const socket = await application(bridge.url)
        await bridge.register("shop", "b".repeat(64))
        await bridge.close()
        socket.terminate()
        assert.strictEqual(log.mock.calls.length, 0)
        assert.strictEqual(error.mock.calls.length, lines)
      }
    } finally {
      vi.restoreAllMocks()
    }
  })

  it("needs no type of effect to be used", () => {
    const declarations = readFileSync(new URL("../../../src/layers/host/PromiseBridge.ts", import.meta.url), "utf8")
    const [, handle = ""] = /export interface PromiseBridge ([\s\S]*?)\n}/.exec(declarations) ?? []
    assert.notMatch(handle, /Effect\.|Stream\.|Layer\./)
  })
})
