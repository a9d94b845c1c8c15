/** The released `dsh` command line with the packed plugin, a scripted model and an application. */
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { createFrontendToolsClient } from "dsh-frontend-tools-client"
import { Effect, Fiber, Schedule } from "effect"
import { headlessProfile, type ProfileOptions } from "./Profile.ts"
import { scriptedModel } from "./ScriptedModel.ts"

const parametersSchema = { type: "object", properties: { user: { type: "string" } }, required: ["user"] }

/** The application: keeps trying until the bridge is there. */
const openShop = Effect.fnUntraced(function* (port: number, key: string) {
  const ran: Array<string> = []
  const tool = (name: string, readOnly: boolean, result: unknown) => ({
    name,
    description: name,
    readOnly,
    parametersSchema,
    execute: async () => {
      ran.push(name)
      return result
    }
  })
  const connect = Effect.acquireRelease(
    Effect.tryPromise(async () => {
      const client = createFrontendToolsClient({ url: `ws://127.0.0.1:${port}`, key, reconnect: false })
      await client.connect()
      await client.registerTools([
        tool("read_cart", true, { items: ["tea", "cake"] }),
        tool("submit_order", false, { ordered: true })
      ])
      return client
    }),
    (client) => Effect.sync(() => client.disconnect())
  )
  const connected = yield* Effect.forkScoped(Effect.retry(connect, Schedule.spaced("50 millis")))
  return { ran, connected: Fiber.join(connected) }
})

/** One turn in which the model calls one tool of the shop. */
const turn = Effect.fnUntraced(function* (tool: string, args: object, options?: ProfileOptions) {
  const profile = yield* headlessProfile(options)
  const shop = yield* openShop(profile.port, profile.key)
  const model = yield* scriptedModel(tool, args)
  const { code, stderr, stdout } = yield* profile.ask(model.url)
  assert.strictEqual(code, 0, stderr)
  console.log(stdout.trim())
  return { stdout, ran: shop.ran, offered: model.offered.at(-1) ?? [] }
})

/** How the harness ends when the plugin cannot start. */
const failure = Effect.fnUntraced(function* (
  options: ProfileOptions,
  prepare: (profile: { readonly port: number; readonly roster: string }) => void
) {
  const profile = yield* headlessProfile(options)
  prepare(profile)
  const { code, stderr } = yield* profile.ask("http://127.0.0.1:9")
  assert.strictEqual(code, 1)
  return stderr
})

describe("dsh in headless mode", () => {
  it.live("calls an application's read tool, and its final text carries the result", () =>
    Effect.gen(function* () {
      const { offered, ran, stdout } = yield* turn("shop__read_cart", { user: "ann" })
      assert.deepStrictEqual(ran, ["read_cart"])
      assert.match(stdout, /FINAL [\s\S]*"tea"/)
      for (const name of ["shop__submit_order", "frontend_tools_register_client", "frontend_tools_revoke_client"]) {
        assert.include(offered, name)
      }
    })
  )

  it.live("denies a write, which never reaches the application", () =>
    Effect.gen(function* () {
      const { ran, stdout } = yield* turn("shop__submit_order", { user: "ann" })
      assert.deepStrictEqual(ran, [])
      assert.match(stdout, /FINAL .*no approval channel is available/)
    })
  )

  it.live("runs a write that somebody approves", () =>
    Effect.gen(function* () {
      const beside = fileURLToPath(new URL("./approver.js", import.meta.url))
      const { ran, stdout } = yield* turn("shop__submit_order", { user: "ann" }, { beside })
      assert.deepStrictEqual(ran, ["submit_order"])
      assert.match(stdout, /FINAL [\s\S]*"ordered": true/)
    })
  )

  it.live("refuses arguments that break the tool's schema", () =>
    Effect.gen(function* () {
      const { ran, stdout } = yield* turn("shop__read_cart", { nope: 1 })
      assert.deepStrictEqual(ran, [])
      assert.match(stdout, /FINAL .*missing required property "user"/)
    })
  )

  it.live("does not start beside a taken port, with a broken roster or a wrong configuration, and says why", () =>
    Effect.gen(function* () {
      const taken = createServer()
      yield* Effect.addFinalizer(() => Effect.sync(() => taken.close()))
      assert.match(yield* failure({}, ({ port }) => taken.listen(port, "127.0.0.1")), /EADDRINUSE/)
      assert.match(yield* failure({}, ({ roster }) => writeFileSync(roster, "{")), /roster is not valid JSON/)
      assert.match(yield* failure({ config: ["callTimeoutMs: soon"] }, () => {}), /callTimeoutMs/)
    })
  )
})
