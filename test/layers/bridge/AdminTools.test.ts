import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, FileSystem, Layer, Logger, Option } from "effect"
import {
  AdminTools,
  Bridge,
  BridgeConfig,
  type BridgeOptionsInput,
  MemoryHost,
  Roster,
  WebSocketListener
} from "../../../src/index.ts"
import { connect, hello, listed, registerReads } from "../../support/memoryBridge.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const key = (digit: string) => digit.repeat(64)

const bridge = (options: BridgeOptionsInput = {}) =>
  Layer.unwrap(
    Effect.map(temporaryFolder, (stateDir) =>
      AdminTools.layer.pipe(
        Layer.provideMerge(Bridge.layerServer),
        Layer.provideMerge(Roster.layer),
        Layer.provideMerge(MemoryHost.layer()),
        Layer.provideMerge(
          BridgeConfig.layer({ stateDir, staticClients: [{ namespace: "demo", key: "demo-key" }], ...options })
        ),
        Layer.provide(Layer.succeed(WebSocketListener, { port: 4711, url: "ws://127.0.0.1:4711" })),
        Layer.provideMerge(NodeServices.layer)
      )
    )
  )

const call = (name: string, args: unknown, approve = true) =>
  MemoryHost.use((host) => host.call(`frontend_tools_${name}`, args, () => Effect.succeed(approve)))

const errorText = (name: string, args: unknown) =>
  Effect.map(Effect.exit(call(name, args)), (exit) => {
    const error = Exit.findErrorOption(exit)
    return Option.isSome(error) ? error.value.message : assert.fail("did not fail")
  })

const NAMESPACE = 'namespace must be a string matching ^[A-Za-z0-9_-]{1,32}$ (for example "eatc")'
const KEY =
  "key must be a string matching ^[0-9a-f]{64}$; the application generates it with the client SDK's generateClientKey"

describe("AdminTools", () => {
  it.effect("admits, lists and revokes an application", () =>
    Effect.gen(function* () {
      const registered = yield* call("register_client", { namespace: "shop", key: key("a") })
      assert.deepInclude(registered, { namespace: "shop", url: "ws://127.0.0.1:4711", replaced: false })
      const shop = yield* hello(key("a"))
      registerReads(shop, "cart")
      assert.deepStrictEqual(yield* call("list_clients", {}), {
        clients: [
          { namespace: "demo", connected: false, toolCount: 0 },
          { namespace: "shop", connected: true, toolCount: 1 }
        ]
      })
      assert.deepStrictEqual(yield* call("revoke_client", { namespace: "shop" }), {
        namespace: "shop",
        revoked: true,
        connectionDropped: true
      })
      assert.strictEqual(shop.ended(), 1008)
      assert.notInclude(yield* listed, "shop__cart")
      assert.deepInclude(yield* call("revoke_client", { namespace: "shop" }), { revoked: false })
    }).pipe(Effect.provide(bridge()))
  )

  it.effect("drops the connection of the old key when a new one is registered, and lets the new one in at once", () =>
    Effect.gen(function* () {
      yield* call("register_client", { namespace: "shop", key: key("a") })
      const old = yield* hello(key("a"))
      assert.deepInclude(yield* call("register_client", { namespace: "shop", key: key("a") }), { replaced: false })
      assert.isUndefined(old.ended())
      assert.deepInclude(yield* call("register_client", { namespace: "shop", key: key("b") }), { replaced: true })
      assert.strictEqual(old.ended(), 1008)
      const renewed = yield* hello(key("b"))
      assert.deepInclude(renewed.frames()[0], { type: "welcome", namespace: "shop" })
    }).pipe(Effect.provide(bridge()))
  )

  it.effect("does not welcome a newcomer whose key is revoked while the incumbent is asked", () =>
    Effect.gen(function* () {
      yield* call("register_client", { namespace: "shop", key: key("a") })
      yield* hello(key("a"))
      const newcomer = yield* hello(key("a"))
      yield* call("revoke_client", { namespace: "shop" })
      assert.deepStrictEqual(newcomer.frames(), [{ type: "error", code: "auth_failed", message: "key rejected" }])
      assert.strictEqual(newcomer.ended(), 1008)
    }).pipe(Effect.provide(bridge()))
  )

  it.effect.each([
    ["register_client", {}, NAMESPACE],
    ["register_client", null, NAMESPACE],
    ["register_client", { namespace: "a b", key: key("a") }, NAMESPACE],
    ["register_client", { namespace: 5, key: key("a") }, NAMESPACE],
    ["register_client", { namespace: "shop" }, KEY],
    ["register_client", { namespace: "shop", key: "x" }, KEY],
    ["register_client", { namespace: "shop", key: 1 }, KEY],
    [
      "register_client",
      { namespace: "demo", key: key("a") },
      'namespace "demo" is statically configured in cordis.yml; edit the configuration instead of registering'
    ],
    ["revoke_client", { namespace: "" }, NAMESPACE],
    [
      "revoke_client",
      { namespace: "demo" },
      'namespace "demo" is statically configured in cordis.yml; remove it from the configuration instead of revoking'
    ]
  ] as const)("%s refuses %j", ([name, args, message]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* errorText(name, args), message)
    }).pipe(Effect.provide(bridge()))
  )

  it.effect("takes no more arguments than it declares", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* errorText("register_client", { namespace: "shop", key: key("a"), admin: true }),
        "only namespace and key are taken"
      )
      assert.strictEqual(yield* errorText("revoke_client", { namespace: "shop", all: true }), "only namespace is taken")
      assert.strictEqual(yield* errorText("list_clients", { all: true }), "no arguments are taken")
    }).pipe(Effect.provide(bridge()))
  )

  it.effect("writes only with a grant, and lists without one", () =>
    Effect.gen(function* () {
      for (const name of ["register_client", "revoke_client"]) {
        const exit = yield* Effect.exit(call(name, { namespace: "shop", key: key("a") }, false))
        assert.isTrue(Exit.isFailure(exit))
      }
      assert.deepStrictEqual(yield* (yield* Roster).clients.pipe(Effect.map((clients) => clients.length)), 1)
      yield* call("list_clients", {}, false)
      const classes = yield* MemoryHost.use((host) => host.tools)
      assert.deepStrictEqual(
        classes.map(({ access, label, publicName }) => [publicName, access, label]),
        [
          ["frontend_tools_list_clients", "read", "frontend_tools.list_clients"],
          ["frontend_tools_register_client", "write", "frontend_tools.register_client"],
          ["frontend_tools_revoke_client", "write", "frontend_tools.revoke_client"]
        ]
      )
    }).pipe(Effect.provide(bridge()))
  )

  it.effect("does not count against the tool budget", () =>
    Effect.gen(function* () {
      const demo = yield* connect("demo")
      assert.deepStrictEqual(registerReads(demo, "a"), [{ type: "registered", names: ["demo__a"] }])
    }).pipe(Effect.provide(bridge({ maxTools: 1 })))
  )

  it.effect("drops the connection even when the revocation cannot be saved, and says so", () =>
    Effect.gen(function* () {
      const stateDir = yield* temporaryFolder
      const fs = yield* FileSystem.FileSystem
      yield* Effect.gen(function* () {
        yield* call("register_client", { namespace: "shop", key: key("a") })
        const shop = yield* hello(key("a"))
        const file = `${stateDir}/frontend-tools-clients.json`
        yield* fs.remove(file)
        yield* fs.makeDirectory(file)
        const text = yield* errorText("revoke_client", { namespace: "shop" })
        assert.include(text, 'so "shop" is still registered although its connection was dropped')
        assert.strictEqual(shop.ended(), 1008)
      }).pipe(Effect.provide(bridge({ stateDir })))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("lets no key into a result, an error or a log", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
      const seen = yield* Effect.gen(function* () {
        const results = [
          yield* call("register_client", { namespace: "shop", key: key("a") }),
          yield* call("register_client", { namespace: "shop", key: key("b") }),
          yield* errorText("register_client", { namespace: "other", key: key("b") }),
          yield* errorText("register_client", { namespace: "other", key: `${key("b")}!` }),
          yield* call("list_clients", {}),
          yield* call("revoke_client", { namespace: "shop" })
        ]
        const wrong = yield* hello(key("c"))
        wrong.send(`{"type":"hello","protocol":5,"key":"${key("c")}"`)
        return JSON.stringify(results)
      }).pipe(Effect.provide(bridge()), Effect.provide(logger))
      for (const secret of ["aaaaaaaa", "bbbbbbbb", "cccccccc"]) {
        assert.notInclude(seen, secret)
        assert.notInclude(lines.join("\n"), secret)
      }
    })
  )
})
