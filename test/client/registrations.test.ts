/** What the application wants the bridge to have, and how it comes about. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { FrontendTool } from "../../src/client/promise.ts"
import { settle } from "../support/memorySocket.ts"
import { connectedClient, outcome, quiet, type ScriptedSocket, scriptedClient } from "../support/scriptedSocket.ts"

const tool = (name: string, extra: Partial<FrontendTool> = {}): FrontendTool => ({
  name,
  description: `does ${name}`,
  parametersSchema: { type: "object" },
  readOnly: true,
  execute: () => name,
  ...extra
})

const tools = (...names: ReadonlyArray<string>) => names.map((name) => tool(name))

/** What was sent, in short: `+a,b` registers, `-a` unregisters. */
const brief = (socket: ScriptedSocket) =>
  socket.take().map(({ names, tools, type }) => {
    if (type === "register" && Array.isArray(tools)) return `+${tools.map(({ name }) => name).join(",")}`
    return type === "unregister" && Array.isArray(names) ? `-${names.join(",")}` : String(type)
  })

const registered = (socket: ScriptedSocket, ...names: ReadonlyArray<string>) => {
  socket.say({ type: "registered", names: names.map((name) => `demo__${name}`) })
  return settle
}

const unregistered = (socket: ScriptedSocket, ...names: ReadonlyArray<string>) => {
  socket.say({ type: "unregistered", names })
  return settle
}

const refused = (socket: ScriptedSocket, message: string, code = "invalid_tool") => {
  socket.say({ type: "error", code, message })
  return settle
}

/** Cuts the session and welcomes the next one. */
const reconnect = Effect.fnUntraced(function* ({ latest }: { readonly latest: () => ScriptedSocket }) {
  latest().drop()
  yield* settle
  yield* TestClock.adjust("2 seconds")
  yield* settle
  latest().welcome()
  yield* settle
})

describe("registering", () => {
  it.effect("sends a batch as it is and resolves with its public names", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const promise = client.registerTools([
        tool("read", { outputSchema: { type: "string" } }),
        tool("write", { readOnly: undefined, outputSchema: undefined })
      ])
      yield* settle
      assert.deepStrictEqual(latest().take(), [
        {
          type: "register",
          tools: [
            {
              name: "read",
              description: "does read",
              parametersSchema: { type: "object" },
              readOnly: true,
              outputSchema: { type: "string" }
            },
            { name: "write", description: "does write", parametersSchema: { type: "object" } }
          ]
        }
      ])
      latest().say({ type: "registered", names: ["demo__read", "demo__write_0123456789ab"] })
      assert.deepStrictEqual(yield* outcome(promise), ["demo__read", "demo__write_0123456789ab"])
    })
  )

  it.effect("an empty batch needs no frame", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      assert.deepStrictEqual(yield* outcome(client.registerTools([])), [])
      assert.deepStrictEqual(yield* outcome(client.unregisterTools([])), [])
      assert.deepStrictEqual(latest().sent, [])
    })
  )

  it.effect("waits for a session, and for the answer before it sends more", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* scriptedClient()
      const early = quiet(client.registerTools(tools("a")))
      client.connect().catch(() => {})
      latest().welcome()
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a"])
      const second = quiet(client.registerTools(tools("b")))
      const third = quiet(client.registerTools(tools("c")))
      yield* settle
      assert.deepStrictEqual(brief(latest()), [])
      yield* registered(latest(), "a")
      assert.deepStrictEqual(brief(latest()), ["+b,c"])
      yield* registered(latest(), "b", "c")
      assert.deepStrictEqual(yield* outcome(Promise.all([early, second, third])), [
        ["demo__a"],
        ["demo__b"],
        ["demo__c"]
      ])
    })
  )

  it.effect("checks a tool before it is sent, and says what is wrong with which", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const { client, latest } = yield* connectedClient({
        onRefused: ({ message }, names) => told.push(`${names}: ${message}`)
      })
      const cyclic: Record<string, unknown> = {}
      cyclic.self = cyclic
      const faults = [
        tool("a b"),
        tool("a", { description: 7 as never }),
        tool("a", { parametersSchema: undefined as never }),
        tool("a", { parametersSchema: [] as never }),
        tool("a", { outputSchema: null as never }),
        tool("a", { readOnly: "yes" as never }),
        { ...tool("a"), extra: cyclic }
      ]
      const messages: Array<unknown> = []
      for (const fault of faults) messages.push(yield* outcome(client.registerTools([tool("good"), fault])))
      assert.deepStrictEqual(messages.slice(0, -1), [
        'invalid_tool: tool name "a b" must match ^[A-Za-z0-9_-]{1,64}$',
        'invalid_tool: tool "a" description must be a string',
        'invalid_tool: tool "a" parametersSchema must be a JSON object',
        'invalid_tool: tool "a" parametersSchema must be a JSON object',
        'invalid_tool: tool "a" outputSchema must be a JSON object',
        'invalid_tool: tool "a" readOnly must be a boolean when present'
      ])
      assert.match(String(messages.at(-1)), /^invalid_tool: tool "a" cannot be carried as JSON: /)
      assert.strictEqual(
        yield* outcome(client.registerTools([tool("twice"), tool("twice")])),
        'invalid_tool: tool "twice" is already registered by this client'
      )
      assert.strictEqual(told.length, 8)
      assert.strictEqual(told[1], 'a: tool "a" description must be a string')
      // Nothing of any of them is left.
      assert.deepStrictEqual(brief(latest()), [])
      yield* reconnect({ latest })
      assert.deepStrictEqual(brief(latest()), [])
    })
  )

  it.effect("a batch that the bridge refuses rejects its own promise with the reason and is forgotten", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const scripted = yield* connectedClient({
        onRefused: ({ code, message }, names) => told.push(`${names}: ${code}: ${message}`)
      })
      const { client, latest } = scripted
      const good = quiet(client.registerTools(tools("a")))
      yield* settle
      yield* registered(latest(), "a")
      const bad = quiet(client.registerTools(tools("b", "c")))
      yield* settle
      const later = quiet(client.registerTools(tools("d")))
      brief(latest())
      yield* refused(latest(), "no room", "too_many_tools")
      assert.deepStrictEqual(brief(latest()), ["+d"])
      yield* registered(latest(), "d")
      assert.strictEqual(yield* outcome(bad), "too_many_tools: no room")
      assert.deepStrictEqual(yield* outcome(Promise.all([good, later])), [["demo__a"], ["demo__d"]])
      assert.deepStrictEqual(told, ["b,c: too_many_tools: no room"])
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), ["+a,d"])
    })
  )

  it.effect("batches that went together are told apart when one of them is refused", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const bad = quiet(client.registerTools(tools("a", "b")))
      const good = quiet(client.registerTools(tools("c", "d")))
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a,b,c,d"])
      yield* refused(latest(), "no room", "too_many_tools")
      assert.deepStrictEqual(brief(latest()), ["+a,b"])
      yield* refused(latest(), "b is bad")
      assert.deepStrictEqual(brief(latest()), ["+c,d"])
      yield* registered(latest(), "c", "d")
      assert.strictEqual(yield* outcome(bad), "invalid_tool: b is bad")
      assert.deepStrictEqual(yield* outcome(good), ["demo__c", "demo__d"])
    })
  )

  it.effect("a batch that the bridge hangs up on is not sent again", () =>
    Effect.gen(function* () {
      const scripted = yield* connectedClient()
      const { client, latest } = scripted
      const bad = quiet(client.registerTools(tools("a")))
      yield* settle
      latest().say({ type: "error", code: "invalid_message", message: "not like this" })
      assert.strictEqual(yield* outcome(bad), "invalid_message: not like this")
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), [])
    })
  )

  it.effect("what does not fit into a frame is refused here", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      // Two bytes for each character: the text alone is below the limit.
      const large = client.registerTools(
        Array.from({ length: 6 }, (_, i) => tool(`t${i}`, { description: "ü".repeat(10_000) }))
      )
      assert.strictEqual(yield* outcome(large), "invalid_tool: the batch is larger than the 100000 bytes of a frame")
      assert.deepStrictEqual(latest().sent, [])
      // Two batches that only together are too large go one after the other.
      const halves = Promise.all(
        [0, 1].map((half) =>
          client.registerTools(
            Array.from({ length: 3 }, (_, i) => tool(`h${half}${i}`, { description: "ü".repeat(10_000) }))
          )
        )
      )
      yield* settle
      assert.deepStrictEqual(latest().accept(), ["h00", "h01", "h02"])
      yield* settle
      assert.deepStrictEqual(latest().accept(), ["h10", "h11", "h12"])
      assert.lengthOf(yield* Effect.promise(() => halves), 2)
    })
  )
})

describe("registering again", () => {
  it.effect("replaces a tool of the same name: it is taken off first", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      client.registerTools(tools("a", "b"))
      yield* settle
      brief(latest())
      yield* registered(latest(), "a", "b")
      const again = quiet(client.registerTools([tool("a", { description: "other" })]))
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["-a"])
      assert.strictEqual(yield* outcome(again), "unsettled")
      yield* unregistered(latest(), "a")
      const [frame] = latest().sent
      assert.deepInclude(frame, { type: "register" })
      assert.deepStrictEqual(brief(latest()), ["+a"])
      yield* registered(latest(), "a")
      assert.deepStrictEqual(yield* outcome(again), ["demo__a"])
    })
  )

  it.effect("the same tool with another handler needs no frame", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      client.registerTools(tools("a"))
      yield* settle
      brief(latest())
      yield* registered(latest(), "a")
      const again = quiet(client.registerTools([tool("a", { execute: () => "new" })]))
      assert.deepStrictEqual(yield* outcome(again), ["demo__a"])
      assert.deepStrictEqual(brief(latest()), [])
      latest().say({ type: "call", callId: "1", name: "a", args: {} })
      yield* settle
      assert.deepInclude(latest().take()[0], { result: "new" })
    })
  )

  it.effect("replaced while its first registration is under way, the last one wins and both hear", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const first = quiet(client.registerTools(tools("a")))
      yield* settle
      const second = quiet(client.registerTools([tool("a", { description: "other" })]))
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a"])
      yield* registered(latest(), "a")
      assert.deepStrictEqual(brief(latest()), ["-a"])
      yield* unregistered(latest(), "a")
      assert.deepStrictEqual(brief(latest()), ["+a"])
      yield* registered(latest(), "a")
      assert.deepStrictEqual(yield* outcome(Promise.all([first, second])), [["demo__a"], ["demo__a"]])
    })
  )

  it.effect("a refused replacement is told to whoever waits for the name", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const first = quiet(client.registerTools(tools("a")))
      const second = quiet(client.registerTools([tool("a", { description: "other" })]))
      yield* settle
      yield* refused(latest(), "a is bad")
      assert.strictEqual(yield* outcome(first), "invalid_tool: a is bad")
      assert.strictEqual(yield* outcome(second), "invalid_tool: a is bad")
    })
  )

  it.effect("a replacement is not refused for what it replaces", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const first = quiet(client.registerTools(tools("a")))
      yield* settle
      const second = quiet(client.registerTools([tool("a", { description: "better" })]))
      yield* refused(latest(), "a is bad")
      assert.strictEqual(yield* outcome(first), "invalid_tool: a is bad")
      assert.deepStrictEqual(brief(latest()), ["+a", "+a"])
      yield* registered(latest(), "a")
      assert.deepStrictEqual(yield* outcome(second), ["demo__a"])
    })
  )

  it.effect("registerTool gives what takes it back, unless it was replaced since", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const first = client.registerTool(tool("a"))
      yield* settle
      brief(latest())
      yield* registered(latest(), "a")
      assert.strictEqual(yield* outcome(first.registered), "demo__a")
      {
        using second = client.registerTool(tool("a"))
        first.unregister()
        assert.strictEqual(yield* outcome(second.registered), "demo__a")
        assert.deepStrictEqual(brief(latest()), [])
      }
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["-a"])
    })
  )

  it.effect("mounted, unmounted and mounted in one turn is one registration", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      client.registerTool(tool("a")).unregister()
      const { registered: mounted } = client.registerTool(tool("a"))
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a"])
      yield* registered(latest(), "a")
      assert.strictEqual(yield* outcome(mounted), "demo__a")
    })
  )
})

describe("taking tools back", () => {
  it.effect("resolves with those that were registered, once the bridge is without them", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      client.registerTools(tools("a", "b"))
      yield* settle
      brief(latest())
      yield* registered(latest(), "a", "b")
      const removal = quiet(client.unregisterTools(["b", "nope", "b"]))
      assert.strictEqual(yield* outcome(removal), "unsettled")
      assert.deepStrictEqual(brief(latest()), ["-b"])
      yield* unregistered(latest(), "b")
      assert.deepStrictEqual(yield* outcome(removal), ["b"])
      assert.deepStrictEqual(yield* outcome(client.unregisterTools(["b"])), [])
      assert.deepStrictEqual(brief(latest()), [])
    })
  )

  it.effect("while a registration is under way, it follows it", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      const registration = quiet(client.registerTools(tools("a")))
      yield* settle
      const removal = quiet(client.unregisterTools(["a"]))
      assert.strictEqual(yield* outcome(removal), "unsettled")
      assert.deepStrictEqual(brief(latest()), ["+a"])
      assert.strictEqual(
        yield* outcome(registration),
        'invalid_tool: tool "a" was unregistered before its registration was confirmed'
      )
      yield* registered(latest(), "a")
      assert.deepStrictEqual(brief(latest()), ["-a"])
      yield* unregistered(latest(), "a")
      assert.deepStrictEqual(yield* outcome(removal), ["a"])
    })
  )

  it.effect("between sessions it only changes what the next one gets", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      client.registerTools(tools("a", "b"))
      yield* settle
      yield* registered(latest(), "a", "b")
      latest().drop()
      assert.deepStrictEqual(yield* outcome(client.unregisterTools(["a"])), ["a"])
      yield* TestClock.adjust("2 seconds")
      latest().welcome()
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+b"])
    })
  )
})

describe("over a drop", () => {
  it.effect("every session gets what is registered then, in order, in one frame", () =>
    Effect.gen(function* () {
      const scripted = yield* connectedClient()
      const { client, latest } = scripted
      for (const name of ["c", "a", "b"]) {
        client.registerTools(tools(name))
        yield* settle
        yield* registered(latest(), name)
      }
      client.unregisterTools(["a"])
      yield* settle
      yield* unregistered(latest(), "a")
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), ["+c,b"])
      yield* registered(latest(), "c", "b")
      client.registerTools(tools("a"))
      yield* settle
      yield* registered(latest(), "a")
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), ["+c,b,a"])
    })
  )

  it.effect("fields that this version does not know come back too", () =>
    Effect.gen(function* () {
      const scripted = yield* connectedClient()
      const { client, latest } = scripted
      client.registerTools([{ ...tool("a"), icon: { path: "a.svg" } } as FrontendTool])
      yield* settle
      const [first] = latest().take()
      assert.deepInclude(JSON.parse(JSON.stringify(first)).tools[0], { icon: { path: "a.svg" } })
      yield* registered(latest(), "a")
      yield* reconnect(scripted)
      assert.deepStrictEqual(latest().take(), [first])
    })
  )

  it.effect("who waits for an answer hears of the drop, and the tools come back all the same", () =>
    Effect.gen(function* () {
      const scripted = yield* connectedClient()
      const { client, latest } = scripted
      client.registerTools(tools("old"))
      yield* settle
      yield* registered(latest(), "old")
      const removal = quiet(client.unregisterTools(["old"]))
      yield* settle
      latest().drop()
      // The bridge keeps nothing of a session that is over.
      assert.deepStrictEqual(yield* outcome(removal), ["old"])
      yield* TestClock.adjust("2 seconds")
      latest().welcome()
      const registration = quiet(client.registerTools(tools("a")))
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a"])
      latest().drop()
      assert.strictEqual(
        yield* outcome(registration),
        "disconnected: connection closed before registration was confirmed"
      )
      yield* TestClock.adjust("2 seconds")
      latest().welcome()
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a"])
    })
  )

  it.effect("one tool that a later session refuses costs only itself", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const scripted = yield* connectedClient({ onRefused: (_, names) => told.push(...names) })
      const { client, latest } = scripted
      client.registerTools(tools("a", "b", "c"))
      yield* settle
      yield* registered(latest(), "a", "b", "c")
      yield* reconnect(scripted)
      yield* refused(latest(), "b is bad by now")
      assert.deepStrictEqual(brief(latest()), ["+a,b,c", "+a"])
      yield* registered(latest(), "a")
      assert.deepStrictEqual(brief(latest()), ["+b"])
      yield* refused(latest(), "b is bad by now")
      assert.deepStrictEqual(brief(latest()), ["+c"])
      yield* registered(latest(), "c")
      assert.deepStrictEqual(told, ["b"])
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), ["+a,c"])
    })
  )

  it.effect("tools registered by a listener of the state join the others", () =>
    Effect.gen(function* () {
      const scripted = yield* connectedClient()
      const { client, latest } = scripted
      client.registerTools(tools("a"))
      yield* settle
      yield* registered(latest(), "a")
      client.onStateChange((state) => {
        if (state === "connected") quiet(client.registerTools(tools("b")))
      })
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), ["+a,b"])
      yield* registered(latest(), "a", "b")
      yield* reconnect(scripted)
      assert.deepStrictEqual(brief(latest()), ["+a,b"])
    })
  )

  it.effect("who waits hears when the client gives up or ends, and a later connect still registers", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient({ reconnect: false })
      latest().drop()
      yield* settle
      const registration = quiet(client.registerTools(tools("a")))
      const failing = quiet(client.connect())
      latest().fail()
      assert.match(String(yield* outcome(failing)), /^invalid_message: connection to /)
      assert.strictEqual(yield* outcome(registration), "disconnected: client is not connected")
      client.connect().catch(() => {})
      latest().welcome()
      yield* settle
      assert.deepStrictEqual(brief(latest()), ["+a"])
      const unsent = quiet(client.registerTools(tools("b")))
      client.disconnect()
      assert.strictEqual(yield* outcome(unsent), "disconnected: client is not connected")
    })
  )
})
