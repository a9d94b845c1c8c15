/** The example page as a person has it: in a real browser, with a bridge on a real port. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, References } from "effect"
import { HttpServer } from "effect/http"
import * as TodoPage from "../../examples/todo-page/server.ts"
import { generateClientKey, KEY_STORAGE_NAME } from "../../src/promise.ts"
import { makePerson, startBridge } from "../support/bridgeProcess.ts"
import { Chromium, openPage, openProfile, sees } from "../support/chromium.ts"
import { freePort } from "../support/freePort.ts"
import { startProgram } from "../support/program.ts"

const KEY = generateClientKey()
const BRIDGE = { staticClients: [{ namespace: TodoPage.NAMESPACE, key: KEY }] }

const tool = (name: string) => `${TodoPage.NAMESPACE}__${name}`
const ALL = ["list_todos", "find_todos", "add_todo", "set_done"].map(tool)

/** The page's server on a free port, for the bridge at this address. */
const servePage = Effect.fnUntraced(function* (options: Omit<TodoPage.TodoPageOptions, "port">) {
  const services = yield* Layer.build(
    TodoPage.layer({ port: 0, ...options }).pipe(Layer.provide(Layer.succeed(References.MinimumLogLevel, "None")))
  )
  return yield* Effect.provide(HttpServer.addressFormattedWith(Effect.succeed), services)
})

/** A profile in which the page has this key from an earlier visit. */
const knownProfile = Effect.gen(function* () {
  const profile = yield* openProfile
  yield* Effect.promise(() =>
    profile.addInitScript(([name = "", key = ""]) => localStorage.setItem(name, key), [KEY_STORAGE_NAME, KEY])
  )
  return profile
})

layer(Chromium.layer(), { timeout: "60 seconds", excludeTestServices: true })("The todo page", (it) => {
  it.effect("connects, and shows what a model does to it", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge(BRIDGE)
      const page = yield* openPage(yield* servePage({ bridge: bridge.url }), yield* knownProfile)
      yield* sees(page, "#badge", "connected as todo-page")
      yield* bridge.offers(...ALL)

      yield* bridge.call(tool("add_todo"), { title: "Read <b>aloud</b>" })
      yield* sees(page, "#todos label", "Read <b>aloud</b>")
      yield* bridge.call(tool("set_done"), { id: 4, done: true })
      yield* sees(page, "#count", "2 open, 2 done")
      assert.deepStrictEqual(yield* bridge.call(tool("find_todos"), { text: "ALOUD" }), [
        { id: 4, title: "Read <b>aloud</b>", done: true }
      ])

      // What a person does, the model sees.
      yield* Effect.promise(() => page.getByRole("checkbox", { name: "Call the dentist" }).check())
      assert.deepInclude(yield* bridge.call(tool("list_todos")), { id: 3, title: "Call the dentist", done: true })

      const refused = yield* Effect.flip(bridge.call(tool("add_todo"), { title: " " }))
      assert.include(refused.message, "title must be a text that is not empty")
      yield* sees(page, "#calls [data-outcome=failed]", "title must be a text")
    })
  )

  it.effect("does nothing to a list before a person has allowed it", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge(BRIDGE)
      const page = yield* openPage(yield* servePage({ bridge: bridge.url }), yield* knownProfile)
      yield* bridge.offers(...ALL)
      const person = makePerson()
      const calling = yield* Effect.forkChild(
        bridge.host.call(tool("add_todo"), { title: "Wait for it" }, person.approve)
      )
      yield* Effect.promise(() => (assert.isTrue === undefined ? Promise.resolve() : Promise.resolve()))
      // Were the write under way, this read would come after it.
      assert.deepPropertyVal(yield* bridge.call(tool("list_todos")), "length", 3)
      assert.strictEqual(yield* Effect.promise(() => page.locator("#todos li").count()), 3)
      person.answer(true)
      yield* Fiber.join(calling)
      assert.deepInclude(person.asked[0], { args: { title: "Wait for it" } })
      assert.strictEqual(yield* Effect.promise(() => page.locator("#todos li").count()), 4)

      const denied = yield* Effect.flip(
        bridge.host.call(tool("add_todo"), { title: "Never" }, () => Effect.succeed(false))
      )
      assert.strictEqual(denied.reason._tag, "NotGranted")
      assert.strictEqual(yield* Effect.promise(() => page.locator("#todos li").count()), 4)
    })
  )

  it.effect("has its tools back within two seconds of a reload", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge(BRIDGE)
      const page = yield* openPage(yield* servePage({ bridge: bridge.url }), yield* knownProfile)
      yield* bridge.offers(...ALL)
      yield* bridge.call(tool("add_todo"), { title: "Survive" })

      const [took] = yield* Effect.timed(
        Effect.promise(() => page.reload()).pipe(Effect.andThen(bridge.offers(...ALL)))
      )
      assert.isBelow(Duration.toMillis(took), 2000)
      assert.deepInclude(yield* bridge.call(tool("list_todos")), { id: 4, title: "Survive", done: false })
    })
  )

  it.effect("survives a restart of the bridge", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const first = yield* startBridge({ ...BRIDGE, port })
      const page = yield* openPage(yield* servePage({ bridge: first.url }), yield* knownProfile)
      yield* first.offers(...ALL)

      yield* first.stop
      yield* sees(page, "#badge", "reconnecting")
      const second = yield* startBridge({ ...BRIDGE, port })
      const [took] = yield* Effect.timed(second.offers(...ALL))
      assert.isBelow(Duration.toMillis(took), 2000)
      yield* sees(page, "#badge", "connected as todo-page")
      yield* second.call(tool("add_todo"), { title: "After the restart" })
      yield* sees(page, "#todos label", "After the restart")
    })
  )

  it.effect("says in a second tab that the first one is connected, and takes over from it", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge(BRIDGE)
      const address = yield* servePage({ bridge: bridge.url })
      const profile = yield* knownProfile
      const first = yield* openPage(address, profile)
      yield* bridge.offers(...ALL)

      const second = yield* openPage(address, profile)
      yield* sees(second, "#badge", "another tab is connected")
      yield* sees(first, "#badge", "connected as todo-page")
      yield* Effect.promise(() => first.close())
      yield* sees(second, "#badge", "connected as todo-page")
    })
  )

  it.effect("asks to be let in, and is when a person presses the button", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge()
      const asked: Array<string> = []
      const page = yield* openPage(
        yield* servePage({
          bridge: bridge.url,
          host: { memory: bridge.host, onCall: (name) => Effect.sync(() => asked.push(name)) }
        })
      )
      yield* sees(page, "#badge", "refused: key not registered")
      yield* Effect.promise(() => page.click("#admit"))
      yield* sees(page, "#badge", "connected as todo-page")

      // Without a model: its part, and the person's, are played in the page.
      yield* Effect.promise(async () => {
        await page.selectOption("#tool", "add_todo")
        await page.click("#call button")
        await page.click("#approval [value=deny]")
      })
      yield* sees(page, "#answer[data-outcome=failed]", /./)
      yield* Effect.promise(async () => {
        await page.click("#call button")
        await page.click("#approval [value=allow]")
      })
      yield* sees(page, "#todos label", "Buy coffee")
      assert.deepStrictEqual(asked, [tool("add_todo"), tool("add_todo")])
    })
  )

  it.effect("copies a text for the model that holds the key, and shows it nowhere", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge(BRIDGE)
      const profile = yield* knownProfile
      yield* Effect.promise(() => profile.grantPermissions(["clipboard-read", "clipboard-write"]))
      const page = yield* openPage(yield* servePage({ bridge: bridge.url }), profile)
      yield* sees(page, "#badge", "connected")
      yield* Effect.promise(() => page.click("#copy"))
      yield* sees(page, "#copy", "Copied")
      const copied = yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText()))
      assert.include(copied, `namespace: todo-page\nkey: ${KEY}`)
      assert.notInclude(yield* Effect.promise(() => page.content()), KEY)
    })
  )

  it.effect("lets no other site play the model", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge()
      const host = { memory: bridge.host, onCall: () => Effect.void }
      const address = yield* servePage({ bridge: bridge.url, host })
      const post = (origin: string) =>
        Effect.promise(async () => {
          const response = await fetch(`${address}/admit`, {
            method: "POST",
            headers: { origin, "content-type": "application/json" },
            body: JSON.stringify({ key: KEY })
          })
          return response.json()
        })
      assert.deepStrictEqual(yield* post("http://elsewhere.example"), {
        ok: false,
        message: "only the page itself may ask"
      })
      assert.deepInclude(yield* post(address), { ok: true })
    })
  )

  it.effect("goes alone beside a bridge that runs elsewhere", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge(BRIDGE)
      const program = yield* startProgram(["examples/todo-page/main.ts"], {
        TODO_PAGE_PORT: "0",
        FRONTEND_TOOLS_URL: bridge.url
      })
      yield* program.until((stdout) => stdout.includes("its bridge at"))
      const [address = assert.fail("no address")] = program.stdout().match(/http:\S+(?=;)/) ?? []
      const page = yield* openPage(address, yield* knownProfile)
      yield* sees(page, "#badge", "connected as todo-page")
      yield* bridge.offers(...ALL)
      assert.isFalse(yield* Effect.promise(() => page.isVisible("#play")))
    })
  )
})
