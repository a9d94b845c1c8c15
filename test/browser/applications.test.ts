/** What applications do with the client in a real browser, beyond the example page. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import type { BrowserContext, Frame, Page } from "playwright-core"
import type { ModelContext } from "../../src/promise.ts"
import { startBridge } from "../support/bridgeProcess.ts"
import { Chromium, openPage, openProfile } from "../support/chromium.ts"
import { freePort } from "../support/freePort.ts"
import { PageServer, type Sdk } from "../support/pageServer.ts"

declare global {
  interface Document {
    readonly modelContext: ModelContext & {
      registerTool(tool: object, options: { readonly signal: AbortSignal }): Promise<unknown>
    }
  }
  var sdk: Sdk
  /** What a page keeps between two looks of a test. */
  var kept: Record<string, unknown>
}

interface Address {
  readonly url: string
  readonly key: string
}

const demo = ({ url }: { readonly url: string }): Address => ({ url, key: "demo-key" })

/** An empty page with the client in it. */
const openBlank = Effect.fnUntraced(function* (path = "/", profile?: BrowserContext) {
  const { origin } = yield* PageServer
  const page = yield* openPage(origin + path, profile)
  yield* Effect.promise(() => page.waitForFunction(() => "sdk" in globalThis))
  return page
})

/** Connects a page that says who it is when it is asked. */
const connectAs = (page: Page, who: string, address: Address) =>
  Effect.promise(() =>
    page.evaluate(
      async ([name, { key, url }]) => {
        const client = sdk.createFrontendToolsClient({ url, key })
        await client.connect()
        return client.registerTools([
          {
            name: "who",
            description: "Says who it is.",
            parametersSchema: { type: "object" },
            readOnly: true,
            execute: () => `${name} at ${client.namespace}`
          }
        ])
      },
      [who, address] as const
    )
  )

/** Why one attempt to connect failed, or that it did not. */
const attempt = (page: Page | Frame, url: string, key = "demo-key") =>
  Effect.promise(() =>
    page.evaluate(
      async (options) => {
        const client = sdk.createFrontendToolsClient(options)
        await client.connect().catch(() => {})
        const { message, reason, status } = client.detail
        client.disconnect()
        return { status, reason, message: message ?? "" }
      },
      { url, key }
    )
  )

const world = Layer.merge(Chromium.layer("--enable-features=WebMCP"), PageServer.layer)

/** A page of a site on the Internet, which has what the page server has. */
const openPublic = Effect.fnUntraced(function* (path: string, profile: BrowserContext) {
  const { origin } = yield* PageServer
  yield* Effect.promise(() =>
    profile.route(/^https:\/\/\w+\.example\//, async (route) => {
      const { pathname, search } = new URL(route.request().url())
      const response = await fetch(origin + pathname + search)
      await route.fulfill({
        body: await response.text(),
        contentType: response.headers.get("content-type") ?? ""
      })
    })
  )
  const page = yield* openPage(`https://shop.example${path}`, profile)
  const frame = page.frames().at(-1) ?? page.mainFrame()
  yield* Effect.promise(() => frame.waitForFunction(() => "sdk" in globalThis))
  return page
})

layer(world, { timeout: "60 seconds", excludeTestServices: true })("A page", (it) => {
  it.effect("has its own tools under its own namespace, whatever another has", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge()
      const first = yield* openBlank()
      const second = yield* openBlank()
      assert.deepStrictEqual(yield* connectAs(first, "first", demo(bridge)), ["demo__who"])
      assert.deepStrictEqual(yield* connectAs(second, "second", { url: bridge.url, key: "shop-key" }), ["shop__who"])
      assert.strictEqual(yield* bridge.call("demo__who"), "first at demo")
      assert.strictEqual(yield* bridge.call("shop__who"), "second at shop")

      yield* Effect.promise(() => first.close())
      yield* bridge.lacks("demo__who")
      assert.strictEqual(yield* bridge.call("shop__who"), "second at shop")
    })
  )

  it.effect("hears in its handler that the caller gave up", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge()
      const page = yield* openBlank()
      yield* Effect.promise(() =>
        page.evaluate(async (options) => {
          globalThis.kept = {}
          const client = sdk.createFrontendToolsClient(options)
          await client.connect()
          await client.registerTools([
            {
              name: "wait",
              description: "Waits.",
              parametersSchema: { type: "object" },
              readOnly: true,
              execute: (_, { signal }) =>
                new Promise((resolve) => {
                  kept.waiting = true
                  signal.addEventListener("abort", () => {
                    kept.aborted = signal.reason.name
                    resolve("late")
                  })
                })
            }
          ])
        }, demo(bridge))
      )
      const calling = yield* Effect.forkChild(bridge.call("demo__wait"), { startImmediately: true })
      yield* Effect.promise(() => page.waitForFunction(() => kept.waiting))
      yield* Fiber.interrupt(calling)
      yield* Effect.promise(() => page.waitForFunction(() => kept.aborted === "AbortError"))
    })
  )

  it.effect("may host the client in its service worker", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge()
      const page = yield* openBlank()
      const states = yield* Effect.promise(() =>
        page.evaluate(async (options) => {
          await navigator.serviceWorker.register("/worker.js", { type: "module" })
          const { active } = await navigator.serviceWorker.ready
          const { port1, port2 } = new MessageChannel()
          active?.postMessage(options, [port2])
          return new Promise<Array<string>>((resolve) => {
            const seen: Array<string> = []
            port1.onmessage = ({ data }) => {
              seen.push(data)
              if (data === "connected") resolve(seen)
            }
          })
        }, demo(bridge))
      )
      assert.deepStrictEqual(states, ["connecting", "connected"])
      yield* bridge.offers("demo__where")
      assert.deepStrictEqual(yield* bridge.call("demo__where"), { scope: "ServiceWorkerGlobalScope", document: false })
    })
  )

  for (const [implementation, path] of [
    ["the browser's own", "/"],
    ["a polyfill's", "/polyfilled"]
  ] as const) {
    it.effect(`mirrors the tools of ${implementation} model context`, () =>
      Effect.gen(function* () {
        const bridge = yield* startBridge()
        const page = yield* openBlank(path)
        const native = yield* Effect.promise(() =>
          page.evaluate(async (options) => {
            const client = sdk.createFrontendToolsClient(options)
            await client.connect()
            const { modelContext } = document
            const add = async (name: string, readOnlyHint: boolean, execute: (input: never) => Promise<unknown>) => {
              const controller = new AbortController()
              const tool = {
                name,
                description: `does ${name}`,
                inputSchema: { type: "object", properties: { by: { type: "integer" } } },
                annotations: { readOnlyHint },
                execute
              }
              await modelContext.registerTool(tool, { signal: controller.signal })
              return () => controller.abort()
            }
            let count = 1
            await add("count.read", true, async () => ({ count }))
            const remove = await add("count_add", false, async ({ by }: { by: number }) => {
              count += by
            })
            const mirror = sdk.mirrorModelContext(modelContext, client)
            globalThis.kept = { add: () => add("late", true, async () => "here"), remove, stop: mirror.stop }
            await mirror.synced()
            return modelContext.registerTool.toString().includes("[native code]")
          }, demo(bridge))
        )
        assert.strictEqual(native, path === "/")
        yield* bridge.offers("demo__count_read", "demo__count_add")

        assert.deepStrictEqual(yield* bridge.call("demo__count_read"), { count: 1 })
        // What the page did not declare to be harmless asks first.
        const refused = yield* Effect.flip(bridge.host.call("demo__count_add", { by: 2 }))
        assert.strictEqual(refused.reason._tag, "NotGranted")
        assert.isNull(yield* bridge.call("demo__count_add", { by: 2 }))
        assert.deepStrictEqual(yield* bridge.host.call("demo__count_read", {}), { count: 3 })

        const run = (name: string) =>
          Effect.promise(() => page.evaluate((key) => Reflect.apply(kept[key] as never, null, []), name))
        yield* run("add")
        yield* bridge.offers("demo__late")
        assert.strictEqual(yield* bridge.call("demo__late"), "here")
        yield* run("remove")
        yield* bridge.lacks("demo__count_add")
        yield* bridge.offers("demo__late", "demo__count_read")
        yield* run("stop")
        yield* bridge.lacks("demo__late")
        assert.lengthOf(
          (yield* bridge.host.tools).filter(({ namespace }) => namespace === "demo"),
          0
        )
      })
    )
  }

  it.effect(
    "names what keeps it from its bridge: nothing there, another program, another origin, the page's policy",
    () =>
      Effect.gen(function* () {
        const { origin } = yield* PageServer
        const page = yield* openBlank()
        const nothing = yield* attempt(page, `ws://127.0.0.1:${yield* freePort}`)
        assert.deepInclude(nothing, { status: "disconnected", reason: "unreachable" })
        assert.include(nothing.message, "is the bridge running, and on this port?")

        const program = yield* attempt(page, origin.replace("http", "ws"))
        assert.strictEqual(program.reason, "not_a_bridge")

        const picky = yield* startBridge({ allowedOrigins: ["https://shop.example"] })
        const stranger = yield* attempt(page, picky.url)
        assert.strictEqual(stranger.reason, "not_a_bridge")
        assert.include(stranger.message, "does not admit this page's origin")

        const bridge = yield* startBridge()
        const strict = yield* attempt(yield* openBlank("/csp"), bridge.url)
        assert.strictEqual(strict.reason, "blocked_by_policy")
        assert.include(strict.message, `add ${bridge.url} to its connect-src`)
        assert.strictEqual((yield* attempt(page, bridge.url, "another key")).reason, "auth_failed")
      })
  )

  it.effect(
    "names what keeps it from its bridge: the browser's permission for this machine, without which a site does not reach it",
    () =>
      Effect.gen(function* () {
        const bridge = yield* startBridge()
        const profile = yield* openProfile
        const page = yield* openPublic("/", profile)
        const asking = yield* attempt(page, bridge.url)
        assert.strictEqual(asking.reason, "blocked_by_permission")
        assert.include(asking.message, "allow it when the browser asks")
        assert.strictEqual((yield* attempt(page, "ws://10.0.0.7:31870")).reason, "blocked_mixed_content")

        yield* Effect.promise(() => profile.grantPermissions(["local-network-access"]))
        assert.deepStrictEqual(yield* connectAs(page, "site", demo(bridge)), ["demo__who"])
        assert.strictEqual(yield* bridge.call("demo__who"), "site at demo")
      })
  )

  it.effect("names what keeps it from its bridge: a frame that its page lets nowhere", () =>
    Effect.gen(function* () {
      const bridge = yield* startBridge()
      const profile = yield* openProfile
      const page = yield* openPublic("/frame?of=https://widget.example/", profile)
      const [, frame = assert.fail("no frame")] = page.frames()
      const framed = yield* attempt(frame, bridge.url)
      assert.strictEqual(framed.reason, "blocked_by_policy")
      assert.include(framed.message, 'allow="loopback-network"')
    })
  )
})
