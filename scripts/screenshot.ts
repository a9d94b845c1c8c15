/** `npm run screenshot`: the picture of the todo page in the README, taken in a real browser while a model uses it. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, References } from "effect"
import { HttpServer } from "effect/http"
import { Bridge, BridgeConfig, MemoryHost, WebSocketListener } from "effect-frontend-tools"
import * as TodoPage from "../examples/todo-page/server.ts"
import { Chromium } from "../test/support/chromium.ts"

const PICTURE = new URL("../docs/todo-page.png", import.meta.url).pathname

const bridge = Layer.unwrap(
  FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped()).pipe(
    Effect.map((stateDir) =>
      Bridge.layer.pipe(
        Layer.provideMerge(MemoryHost.layer()),
        Layer.provide(BridgeConfig.layer({ port: 0, stateDir }))
      )
    )
  )
)

const page = Layer.unwrap(
  Effect.gen(function* () {
    const memory = yield* MemoryHost
    const { url } = yield* WebSocketListener
    return TodoPage.layer({ port: 0, bridge: url, host: { memory, onCall: () => Effect.void } })
  })
)

const take = Effect.gen(function* () {
  const address = yield* HttpServer.addressFormattedWith(Effect.succeed)
  const browser = yield* Chromium
  yield* Effect.promise(async () => {
    const tab = await browser.newPage({ viewport: { width: 1180, height: 740 }, colorScheme: "light" })
    await tab.goto(address)
    await tab.click("#admit")
    await tab.selectOption("#tool", "find_todos")
    await tab.click("#call button")
    await tab.locator("#calls [data-outcome=ok]").waitFor()
    await tab.selectOption("#tool", "add_todo")
    await tab.click("#call button")
    await tab.click("#approval [value=allow]")
    await tab.locator("#todos", { hasText: "Buy coffee" }).waitFor()
    await tab.screenshot({ path: PICTURE })
  })
})

take.pipe(
  Effect.scoped,
  Effect.provide(Layer.mergeAll(page.pipe(Layer.provide(bridge)), Chromium.layer())),
  Effect.provide(NodeServices.layer),
  Effect.provide(Layer.succeed(References.MinimumLogLevel, "Error")),
  NodeRuntime.runMain
)
