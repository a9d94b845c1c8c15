/** Projects as their authors have them: in a development server, which replaces modules as they are edited. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import react from "@vitejs/plugin-react"
import { Context, Effect, Layer, Schedule } from "effect"
import type { Page } from "playwright-core"
import { startBridge } from "../support/bridgeProcess.ts"
import { Chromium, openPage, openProfile, sees } from "../support/chromium.ts"
import { freePort } from "../support/freePort.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { serveForDevelopment } from "../support/viteServer.ts"

const root = join(import.meta.dirname, "../..")

const COUNTER = `
import { useFrontendTool } from "${root}/examples/react/useFrontendTool.ts"
import { useState } from "react"

export const Counter = ({ client }) => {
  const [count, setCount] = useState(0)
  useFrontendTool(client, {
    name: "count",
    description: "Says the count.",
    parametersSchema: { type: "object" },
    readOnly: true,
    execute: () => ({ count, version: 1 })
  })
  return <button id="more" onClick={() => setCount(count + 1)}>{count}</button>
}
`

const APP = `
import { useState } from "react"
import { Counter } from "./Counter.jsx"

export const App = ({ client }) => {
  const [shown, setShown] = useState(true)
  return <>
    <button id="toggle" onClick={() => setShown(!shown)}>toggle</button>
    {shown && <Counter client={client} />}
  </>
}
`

const MAIN = `
import { createFrontendToolsClient } from "effect-frontend-tools/promise"
import { createElement, StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { App } from "./App.jsx"

const url = new URLSearchParams(location.search).get("bridge")
const client = createFrontendToolsClient({ url, key: "demo-key" })
await client.connect()
const counted = {
  registerTool: (tool) => {
    globalThis.registered = (globalThis.registered ?? 0) + 1
    return client.registerTool(tool)
  }
}
createRoot(document.body).render(createElement(StrictMode, null, createElement(App, { client: counted })))
`

const PAGE = `<!doctype html><title>React</title><body></body><script type="module" src="/main.jsx"></script>`

/** A project with a component, served for development. */
class Project extends Context.Service<
  Project,
  {
    readonly address: string
    /** Saves the component with these changes, as a person does in an editor. */
    readonly edit: (changes: Readonly<Record<string, string>>) => Effect.Effect<void>
  }
>()("test/Project") {
  static readonly layer = Layer.effect(
    Project,
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          // Below the package, whose dependencies are the project's.
          await mkdir(join(root, ".tmp"), { recursive: true })
          return mkdtemp(join(root, ".tmp", "react-"))
        }),
        (made) => Effect.promise(() => rm(made, { recursive: true }))
      )
      const files = { "index.html": PAGE, "main.jsx": MAIN, "App.jsx": APP, "Counter.jsx": COUNTER }
      for (const [name, text] of Object.entries(files)) {
        yield* Effect.promise(() => writeFile(join(folder, name), text))
      }
      const address = yield* serveForDevelopment(folder, join(folder, "cache"), [react()])
      const counter = join(folder, "Counter.jsx")
      return {
        address,
        edit: (changes) =>
          Effect.promise(async () => {
            let text = await readFile(counter, "utf8")
            for (const [from, to] of Object.entries(changes)) {
              assert.include(text, from)
              text = text.replace(from, to)
            }
            await writeFile(counter, text)
          })
      }
    })
  )
}

/** The page, and the requests it sends to the bridge. */
const openProject = Effect.fnUntraced(function* (bridge: string) {
  const { address } = yield* Project
  const profile = yield* openProfile
  const page = yield* Effect.promise(() => profile.newPage())
  const sent: Array<string> = []
  page.on("websocket", (socket) => {
    if (!socket.url().startsWith(bridge)) return
    socket.on("framesent", ({ payload }) => {
      const { tools, type } = JSON.parse(String(payload))
      if (type === "register")
        sent.push(`register ${tools.map(({ description }: { description: string }) => description)}`)
      if (type === "unregister") sent.push(type)
    })
  })
  yield* Effect.promise(() => page.goto(`${address}?bridge=${bridge}`))
  return { page, sent }
})

const click = (page: Page, button: string) => Effect.promise(() => page.click(button))

layer(Chromium.layer(), { timeout: "60 seconds", excludeTestServices: true })("A project", (it) => {
  it.effect("with one plain page leads an MCP client to it", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const HOME = yield* temporaryFolder
      const address = yield* serveForDevelopment(join(root, "examples/browser-page"), join(HOME, "cache"), [
        { name: "port", transformIndexHtml: { order: "pre", handler: (html) => html.replace("31870", String(port)) } }
      ])
      const asked: Array<string> = []
      const model = new Client({ name: "reader", version: "1" }, { capabilities: { elicitation: { form: {} } } })
      model.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        asked.push(params.message)
        return { action: "accept" }
      })
      yield* Effect.acquireRelease(
        Effect.promise(() =>
          model.connect(
            new StdioClientTransport({
              command: process.execPath,
              args: [join(root, "dist/cli.js"), "mcp", "--port", String(port), "--log-level", "none"],
              env: { HOME },
              stderr: "ignore"
            })
          )
        ),
        () => Effect.promise(() => model.close())
      )
      const profile = yield* openProfile
      yield* Effect.promise(() => profile.grantPermissions(["clipboard-read", "clipboard-write"]))
      const page = yield* openPage(address, profile)
      yield* sees(page, "#state", "key rejected")
      yield* click(page, "#copy")
      const text = yield* Effect.promise(() => page.evaluate(() => navigator.clipboard.readText()))
      const said = (name: string) => text.match(new RegExp(`${name}: (\\S+)`))?.[1]

      const call = (name: string, args: Record<string, unknown> = {}) =>
        Effect.promise(() => model.callTool({ name, arguments: args }))
      yield* call("frontend_tools_register_client", { namespace: said("namespace"), key: said("key") })
      yield* Effect.promise(() => page.evaluate(() => dispatchEvent(new Event("focus"))))
      yield* sees(page, "#state", "connected")
      yield* Effect.promise(() => model.listTools()).pipe(
        Effect.filterOrFail(({ tools }) => tools.some(({ name }) => name === "my-page__change_title")),
        Effect.retry(Schedule.spaced("20 millis")),
        Effect.timeout("10 seconds")
      )
      yield* call("my-page__change_title", { text: "A model was here" })
      yield* sees(page, "h1", "A model was here")
      assert.deepInclude(yield* call("my-page__read_title"), {
        content: [{ type: "text", text: '"A model was here"' }]
      })
      assert.lengthOf(asked, 2)
      assert.notInclude(asked.join(), said("key") ?? assert.fail("no key"))
    })
  )

  it.layer(Project.layer, { timeout: "60 seconds" })("with React", (it) => {
    it.effect("has the tool registered while the component is mounted, and calls its latest function", () =>
      Effect.gen(function* () {
        const bridge = yield* startBridge()
        const { page, sent } = yield* openProject(bridge.url)
        yield* bridge.offers("demo__count")
        assert.deepStrictEqual(yield* bridge.call("demo__count"), { count: 0, version: 1 })
        yield* click(page, "#more")
        yield* click(page, "#more")
        assert.deepStrictEqual(yield* bridge.call("demo__count"), { count: 2, version: 1 })
        // StrictMode mounts everything twice, which the bridge does not see.
        assert.strictEqual(yield* Effect.promise(() => page.evaluate(() => Reflect.get(globalThis, "registered"))), 2)
        assert.deepStrictEqual(sent, ["register Says the count."])

        yield* click(page, "#toggle")
        yield* bridge.lacks("demo__count")
        yield* click(page, "#toggle")
        yield* bridge.offers("demo__count")
        assert.deepStrictEqual(yield* bridge.call("demo__count"), { count: 0, version: 1 })
      })
    )

    it.effect("survives the edits of its component", () =>
      Effect.gen(function* () {
        const { edit } = yield* Project
        const bridge = yield* startBridge()
        const { page, sent } = yield* openProject(bridge.url)
        yield* bridge.offers("demo__count")
        yield* click(page, "#more")

        yield* edit({ "{count}</button>": "{count} so far</button>", "version: 1": "version: 2" })
        yield* sees(page, "#more", "1 so far")
        assert.deepStrictEqual(yield* bridge.call("demo__count"), { count: 1, version: 2 })
        assert.deepStrictEqual(sent, ["register Says the count."])

        yield* edit({ "Says the count.": "Says how many.", "so far": "until now" })
        yield* sees(page, "#more", "1 until now")
        yield* bridge.until((tools) => tools.some(({ description }) => description === "Says how many."))
        assert.deepStrictEqual(yield* bridge.call("demo__count"), { count: 1, version: 2 })
        assert.deepStrictEqual(sent, ["register Says the count.", "unregister", "register Says how many."])
      })
    )
  })
})
