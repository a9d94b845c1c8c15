/** The client's connection: its states, their reasons, and when it tries again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Redacted, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ClientState } from "../../src/client/ClientState.ts"
import { type ClientOptions, FrontendToolsClient } from "../../src/client/FrontendToolsClient.ts"
import { settle } from "../support/memorySocket.ts"
import { connectedClient, outcome, scriptedClient, scriptedSockets } from "../support/scriptedSocket.ts"

/** A client of the Effect API, every state it was in, and the scope that it lives in. */
const start = Effect.fnUntraced(function* (options: Partial<ClientOptions> = {}) {
  const sockets = scriptedSockets()
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  const client = yield* FrontendToolsClient.make({
    url: "ws://127.0.0.1:31870",
    key: Redacted.make("the-key"),
    socket: sockets.Socket,
    platform: {},
    ...options
  }).pipe(Scope.provide(scope))
  const states: Array<ClientState> = []
  yield* client.states.pipe(
    Stream.runForEach((state) => Effect.sync(() => states.push(state))),
    Effect.forkScoped({ startImmediately: true })
  )
  const last = () => {
    const state = states.at(-1)
    return state ?? assert.fail("no state yet")
  }
  const wait = () => last().retryInMillis ?? assert.fail("does not wait")
  /** Waits for the next attempt, to the millisecond. */
  const nextAttempt = Effect.gen(function* () {
    const before = sockets.opened.length
    const millis = wait()
    yield* TestClock.adjust(millis - 1)
    yield* settle
    assert.strictEqual(sockets.opened.length, before)
    yield* TestClock.adjust(1)
    yield* settle
    assert.strictEqual(sockets.opened.length, before + 1)
    return millis
  })
  const fail = Effect.suspend(() => {
    sockets.latest().fail()
    return settle
  })
  yield* settle
  return { ...sockets, client, states, scope, last, wait, nextAttempt, fail }
})

const brief = ({ reason, status }: ClientState) => (reason === undefined ? status : `${status}: ${reason}`)

const assertBetween = (value: number, least: number, most: number) => {
  assert.isAtLeast(value, least)
  assert.isAtMost(value, most)
}

describe("connecting", () => {
  it.effect("says hello with the key and what it knows, and is connected when welcomed", () =>
    Effect.gen(function* () {
      const { client, latest, states } = yield* start()
      latest().open()
      assert.deepStrictEqual(latest().take(), [{ type: "hello", protocol: 5, key: "the-key", features: ["cancel"] }])
      latest().say({ type: "welcome", protocol: 5, server: "frontend-tools-bridge", namespace: "demo" })
      yield* settle
      assert.deepStrictEqual(states.map(brief), ["connecting", "connected"])
      assert.deepInclude(yield* client.connected, { status: "connected", namespace: "demo", message: undefined })
    })
  )

  it.effect("waits between attempts twice as long each time, up to half a minute, and tries for ever", () =>
    Effect.gen(function* () {
      const { fail, nextAttempt } = yield* start()
      const waits: Array<number> = []
      for (let i = 0; i < 9; i++) {
        yield* fail
        waits.push(yield* nextAttempt)
      }
      for (const [index, millis] of waits.entries()) {
        assertBetween(millis, Math.min(1000 * 2 ** index, 20_000), Math.min(1500 * 2 ** index, 30_000))
      }
    })
  )

  it.effect("starts over with the shortest wait after a session", () =>
    Effect.gen(function* () {
      const { fail, latest, nextAttempt, states, wait } = yield* start()
      for (let i = 0; i < 4; i++) {
        yield* fail
        yield* nextAttempt
      }
      latest().welcome()
      latest().drop()
      yield* settle
      assertBetween(wait(), 1000, 1500)
      assert.deepStrictEqual(states.slice(-3).map(brief), ["connected", "disconnected: closed", "reconnecting: closed"])
    })
  )

  it.effect("spreads the clients of one bridge", () =>
    Effect.gen(function* () {
      const waits = new Set<number>()
      for (let i = 0; i < 8; i++) {
        const { fail, wait } = yield* start()
        yield* fail
        waits.add(wait())
      }
      assert.isAbove(waits.size, 4)
    })
  )

  it.effect("tries at once when told to, and only then", () =>
    Effect.gen(function* () {
      const { client, fail, latest, opened } = yield* start()
      yield* client.retryNow
      assert.strictEqual(opened.length, 1)
      yield* fail
      yield* client.retryNow
      assert.strictEqual(opened.length, 2)
      latest().welcome()
      yield* client.retryNow
      yield* settle
      assert.strictEqual(opened.length, 2)
    })
  )

  it.effect("says that the browser asks its user when that is what holds the socket back", () =>
    Effect.gen(function* () {
      const { last } = yield* start({
        platform: { page: { protocol: "https:", hostname: "shop.example" }, permission: async () => "prompt" }
      })
      yield* TestClock.adjust("10 seconds")
      yield* settle
      assert.strictEqual(brief(last()), "connecting: blocked_by_permission")
      assert.include(last().message, "until you allow it when the browser asks")
    })
  )

  it.effect("gives a bridge that takes the connection ten seconds for its welcome", () =>
    Effect.gen(function* () {
      const { last, latest } = yield* start()
      latest().open()
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(brief(last()), "connecting")
      yield* TestClock.adjust("1 millis")
      yield* settle
      assert.strictEqual(brief(last()), "connecting: handshake_timeout")
      assert.isTrue(latest().closed)
    })
  )

  it.effect("does not cut a session that has been welcomed", () =>
    Effect.gen(function* () {
      const { last, latest } = yield* start()
      latest().welcome()
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(brief(last()), "connected")
      assert.isFalse(latest().closed)
    })
  )

  it.effect("hears nothing of an old socket", () =>
    Effect.gen(function* () {
      const { last, latest, nextAttempt, opened } = yield* start()
      const old = latest()
      old.welcome()
      old.drop()
      yield* settle
      yield* nextAttempt
      latest().welcome()
      old.drop()
      old.fail()
      old.say({ type: "ping" })
      old.say({ type: "welcome", protocol: 5, server: "x", namespace: "stale" })
      yield* settle
      assert.deepStrictEqual(old.sent, [])
      assert.deepInclude(last(), { status: "connected", namespace: "demo" })
      assert.strictEqual(opened.length, 2)
    })
  )

  it.effect("answers a ping in the socket's callback", () =>
    Effect.gen(function* () {
      const { latest } = yield* start()
      latest().welcome()
      latest().say({ type: "ping" })
      assert.deepStrictEqual(latest().sent, [{ type: "pong" }])
    })
  )

  it.effect("ignores in a session what it does not know", () =>
    Effect.gen(function* () {
      const { last, latest } = yield* start()
      latest().welcome()
      latest().say("nonsense")
      latest().say({ type: "novelty" })
      latest().say({ type: "registered", names: ["demo__stray"] })
      latest().say({ type: "unregistered", names: ["stray"] })
      latest().say({ type: "cancel", callId: "stray", reason: "aborted" })
      latest().say({ type: "welcome", protocol: 5, server: "x", namespace: "other" })
      latest().sayBinary()
      yield* settle
      assert.deepInclude(last(), { status: "connected", namespace: "demo" })
      assert.deepStrictEqual(latest().sent, [])
    })
  )

  it.effect("ends with its scope: the socket closes and nothing is tried any more", () =>
    Effect.gen(function* () {
      const { client, latest, opened, scope, states } = yield* start()
      const stream = yield* Effect.forkChild(Stream.runCollect(client.states), { startImmediately: true })
      const first = yield* Effect.forkChild(client.connected, { startImmediately: true })
      latest().welcome()
      assert.deepInclude(yield* Fiber.join(first), { status: "connected" })
      latest().drop()
      yield* settle
      const second = yield* Effect.forkChild(client.connected, { startImmediately: true })
      yield* client.retryNow
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(latest().closed)
      yield* client.retryNow
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(opened.length, 2)
      assert.strictEqual(states.map(brief).at(-1), "disconnected: stopped")
      assert.isDefined(stream.pollUnsafe())
      assert.isDefined(second.pollUnsafe())
    })
  )

  it.effect("ends while it waits, too", () =>
    Effect.gen(function* () {
      const { fail, opened, scope } = yield* start()
      yield* fail
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(opened.length, 1)
    })
  )
})

describe("reasons", () => {
  it.effect("another protocol version stops the client and says so, whichever side finds out", () =>
    Effect.gen(function* () {
      const ours = yield* start()
      ours.latest().refuse("invalid_message", "protocol version 5 is not supported (expected 6)")
      const theirs = yield* start()
      theirs.latest().open()
      theirs.latest().say({ type: "welcome", protocol: 6, server: "frontend-tools-bridge", namespace: "demo" })
      yield* TestClock.adjust("1 hour")
      for (const { client, last, opened } of [ours, theirs]) {
        assert.strictEqual(brief(last()), "refused: protocol_mismatch")
        assert.match(last().message ?? "", /protocol version/)
        assert.isUndefined(last().retryInMillis)
        assert.strictEqual(opened.length, 1)
        // The person may have updated the bridge.
        yield* client.retryNow
        assert.strictEqual(opened.length, 2)
      }
    })
  )

  it.effect("an unknown key says so and is tried again slowly", () =>
    Effect.gen(function* () {
      const { last, latest, nextAttempt } = yield* start()
      for (const least of [4000, 4000, 4000, 8000, 16_000, 20_000, 20_000]) {
        latest().refuse("auth_failed", "key rejected")
        yield* settle
        assert.deepInclude(last(), { status: "refused", reason: "auth_failed", message: "key rejected" })
        assertBetween(yield* nextAttempt, least, least * 1.5)
      }
      latest().welcome()
      yield* settle
      assert.strictEqual(brief(last()), "connected")
    })
  )

  it.effect("an unknown key is not tried again where that is asked for", () =>
    Effect.gen(function* () {
      const { client, last, latest, opened } = yield* start({ authRetry: false })
      latest().refuse("auth_failed", "key rejected")
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(brief(last()), "refused: auth_failed")
      assert.strictEqual(opened.length, 1)
      yield* client.retryNow
      latest().welcome()
      yield* settle
      assert.strictEqual(brief(last()), "connected")
    })
  )

  it.effect("a namespace that is taken says so and is tried again", () =>
    Effect.gen(function* () {
      const { last, latest, nextAttempt } = yield* start()
      latest().refuse("duplicate_connection", "another connection already holds it")
      yield* settle
      assert.deepInclude(last(), { reason: "duplicate_connection", message: "another connection already holds it" })
      assertBetween(yield* nextAttempt, 1000, 1500)
    })
  )

  it.effect.each([
    [1001, "restarting", 1000],
    [1012, "restarting", 4000],
    [1013, "restarting", 4000],
    [1009, "too_large", 1000],
    [1006, "closed", 1000]
  ] as const)("close code %i means %s", ([code, reason, least]) =>
    Effect.gen(function* () {
      const { last, latest, wait } = yield* start()
      latest().welcome()
      latest().drop(code, "so it goes")
      yield* settle
      assert.strictEqual(brief(last()), `reconnecting: ${reason}`)
      assert.strictEqual(last().message, `the connection closed (${code}): so it goes`)
      assertBetween(wait(), least, least * 1.5)
    })
  )

  it.effect("an error that announces the end is the reason for it", () =>
    Effect.gen(function* () {
      const { last, latest } = yield* start()
      latest().welcome()
      latest().say({ type: "error", code: "invalid_message", message: "frame must be a JSON object" })
      latest().drop(1008, "")
      yield* settle
      assert.deepInclude(last(), { reason: "invalid_message", message: "frame must be a JSON object" })
    })
  )

  it.effect("something that is no bridge says so", () =>
    Effect.gen(function* () {
      const greet = Effect.fnUntraced(function* (say: (socket: ReturnType<typeof scripted.latest>) => void) {
        yield* scripted.client.retryNow
        scripted.latest().open()
        say(scripted.latest())
        yield* settle
        assert.strictEqual(brief(scripted.last()), "connecting: not_a_bridge")
        assert.isTrue(scripted.latest().closed)
      })
      const scripted = yield* start()
      yield* greet((socket) => socket.say("hello to you, too"))
      yield* greet((socket) => socket.say({ type: "ping" }))
      yield* greet((socket) => socket.say({ type: "welcome", protocol: 5, server: "x", namespace: "no good" }))
      yield* greet((socket) => socket.sayBinary())
    })
  )

  it.effect("a socket that does not open is looked into at once, also after a drop, and then now and again", () =>
    Effect.gen(function* () {
      let looks = 0
      const probe = () => {
        looks++
        return Promise.reject(new Error("refused"))
      }
      const { fail, last, latest, nextAttempt } = yield* start({ platform: { probe } })
      yield* fail
      assert.strictEqual(looks, 1)
      assert.deepInclude(last(), {
        reason: "unreachable",
        message: "nothing answers at 127.0.0.1:31870: is the bridge running, and on this port?"
      })
      yield* nextAttempt
      latest().welcome()
      latest().drop()
      yield* settle
      assert.strictEqual(last().reason, "closed")
      for (const seen of [2, 2, 2, 2, 3, 3, 3, 3, 3, 4]) {
        yield* nextAttempt
        yield* fail
        assert.strictEqual(looks, seen)
        assert.strictEqual(last().reason, "unreachable")
      }
    })
  )

  it.effect("an address that is none, and a platform without sockets, stop the client", () =>
    Effect.gen(function* () {
      class Picky {
        constructor() {
          throw new SyntaxError("Invalid URL")
        }
      }
      const bad = yield* start({ socket: Picky as never })
      assert.deepInclude(bad.last(), { status: "disconnected", reason: "bad_url", message: "Invalid URL" })
      class Secure {
        constructor() {
          throw new DOMException("insecure", "SecurityError")
        }
      }
      const blocked = yield* start({ socket: Secure as never })
      assert.strictEqual(blocked.last().reason, "blocked_mixed_content")
      const { WebSocket } = globalThis
      Reflect.deleteProperty(globalThis, "WebSocket")
      const none = yield* start({ socket: undefined })
      globalThis.WebSocket = WebSocket
      assert.deepInclude(none.last(), { status: "disconnected", reason: "no_websocket" })
    })
  )
})

describe("connect and disconnect", () => {
  it.effect("the first connection is tried once unless asked otherwise", () =>
    Effect.gen(function* () {
      const { client, latest, opened, states } = yield* scriptedClient()
      const connecting = client.connect()
      latest().refuse("auth_failed", "key rejected")
      assert.strictEqual(yield* outcome(connecting), "auth_failed: key rejected")
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(opened.length, 1)
      assert.deepStrictEqual(states, ["connecting", "disconnected: auth_failed"])
      assert.strictEqual(client.lastError?.code, "auth_failed")
      const again = client.connect()
      latest().welcome()
      assert.isUndefined(yield* outcome(again))
      assert.isUndefined(client.lastError)
    })
  )

  it.effect("retryFirstConnect keeps trying, and connect waits for it", () =>
    Effect.gen(function* () {
      const { client, latest, states } = yield* scriptedClient({ retryFirstConnect: true })
      const connecting = client.connect()
      latest().fail()
      yield* TestClock.adjust("2 seconds")
      // Nobody has registered the key yet.
      latest().refuse("auth_failed", "key rejected")
      yield* TestClock.adjust("6 seconds")
      latest().welcome()
      assert.isUndefined(yield* outcome(connecting))
      assert.deepStrictEqual(states, ["connecting", "connecting: unreachable", "refused: auth_failed", "connected"])
    })
  )

  it.effect("connect on a client that is live or on its way opens no second socket", () =>
    Effect.gen(function* () {
      const { client, latest, opened } = yield* scriptedClient()
      const both = Promise.all([client.connect(), client.connect()])
      latest().welcome()
      yield* Effect.promise(() => both)
      yield* Effect.promise(() => client.connect())
      latest().drop()
      yield* settle
      const third = client.connect()
      latest().welcome()
      yield* Effect.promise(() => third)
      assert.strictEqual(opened.length, 2)
      assert.strictEqual(client.state, "connected")
    })
  )

  it.effect("every failure to open is an error, and the next connect a new attempt", () =>
    Effect.gen(function* () {
      let attempts = 0
      class Picky {
        constructor() {
          attempts++
          throw new SyntaxError("Invalid URL")
        }
      }
      const { client } = yield* scriptedClient({ socket: Picky as never })
      for (const expected of [1, 2]) {
        assert.strictEqual(
          yield* outcome(client.connect()),
          "invalid_message: connection to ws://127.0.0.1:31870 failed before the handshake completed: Invalid URL"
        )
        assert.strictEqual(attempts, expected)
      }
      assert.strictEqual(client.state, "disconnected")
    })
  )

  it.effect("disconnect is final", () =>
    Effect.gen(function* () {
      const { client, latest, opened } = yield* connectedClient()
      client.disconnect()
      client.disconnect()
      assert.isTrue(latest().closed)
      assert.strictEqual(client.state, "disconnected")
      const over = "disconnected: client was disconnected; create a new one to reconnect"
      assert.strictEqual(yield* outcome(client.connect()), over)
      assert.strictEqual(yield* outcome(client.registerTools([])), over)
      assert.strictEqual(yield* outcome(client.unregisterTools([])), over)
      client.retryNow()
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(opened.length, 1)
    })
  )

  it.effect("disconnect settles a connect that is under way", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* scriptedClient()
      const connecting = client.connect()
      client.disconnect()
      assert.strictEqual(yield* outcome(connecting), "disconnected: the client was disconnected")
      assert.isTrue(latest().closed)
    })
  )

  it.effect("`using` ends a client", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* connectedClient()
      {
        using _ = client
      }
      assert.isTrue(latest().closed)
    })
  )

  it.effect("without reconnect a drop is the end, until connect is called", () =>
    Effect.gen(function* () {
      const { client, latest, opened, states } = yield* connectedClient({ reconnect: false })
      latest().drop()
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(opened.length, 1)
      assert.deepStrictEqual(states, ["connecting", "connected", "disconnected: closed"])
      const again = client.connect()
      latest().welcome()
      assert.isUndefined(yield* outcome(again))
    })
  )
})

describe("listeners", () => {
  it.effect("one that throws harms neither the client nor the others", () =>
    Effect.gen(function* () {
      const { client, latest, states } = yield* scriptedClient()
      const unsubscribe = client.onStateChange(() => {
        throw new Error("a fault of the application")
      })
      const heard: Array<string> = []
      client.onStateChange((state) => heard.push(state))
      const connecting = client.connect()
      latest().welcome()
      yield* Effect.promise(() => connecting)
      unsubscribe()
      assert.deepStrictEqual(heard, ["connecting", "connected"])
      assert.deepStrictEqual(states, heard)
    })
  )

  it.effect("one that ends the client is obeyed at once, and all hear things in their order", () =>
    Effect.gen(function* () {
      const { client, latest, opened } = yield* connectedClient()
      const heard: Array<string> = []
      client.onStateChange((state) => {
        if (state === "disconnected") client.disconnect()
      })
      client.onStateChange((state, { reason }) => heard.push(`${state}: ${reason}`))
      latest().drop()
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(opened.length, 1)
      assert.deepStrictEqual(heard, ["disconnected: closed", "disconnected: stopped"])
    })
  )

  it.effect("one may end the client before it has begun", () =>
    Effect.gen(function* () {
      const { client, opened } = yield* scriptedClient()
      client.onStateChange((state) => {
        if (state === "connecting") client.disconnect()
      })
      assert.strictEqual(yield* outcome(client.connect()), "disconnected: the client was disconnected")
      assert.isTrue(opened.every(({ closed }) => closed))
      yield* TestClock.adjust("1 hour")
      assert.isAtMost(opened.length, 1)
    })
  )

  it.effect("one may connect again from where it hears of the end", () =>
    Effect.gen(function* () {
      const { client, latest, opened } = yield* connectedClient({ reconnect: false })
      const again: Array<Promise<void>> = []
      const unsubscribe = client.onStateChange((state) => {
        if (state === "disconnected") again.push(client.connect())
      })
      latest().drop()
      yield* settle
      assert.strictEqual(opened.length, 2)
      latest().welcome()
      yield* Effect.promise(() => Promise.all(again))
      assert.strictEqual(client.state, "connected")
      unsubscribe()
    })
  )

  it.effect("the same function twice is two listeners, each removed by its own", () =>
    Effect.gen(function* () {
      const { client, latest } = yield* scriptedClient()
      let heard = 0
      const listener = () => {
        heard++
      }
      client.onStateChange(listener)
      client.onStateChange(listener)()
      const connecting = client.connect()
      latest().welcome()
      yield* Effect.promise(() => connecting)
      assert.strictEqual(heard, 2)
    })
  )
})
