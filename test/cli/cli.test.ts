/** The built command line in processes of its own. */
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { VERSION } from "../../src/cli/version.ts"
import { WebSocketListener } from "../../src/index.ts"
import { freePort } from "../support/freePort.ts"
import { runProgram, startProgram } from "../support/program.ts"
import { openSession, openSocket } from "../support/socketBridge.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url))
const KEY = "demo-key"

const cli = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  Effect.flatMap(temporaryFolder, (home) => runProgram([CLI, ...args], { HOME: home, ...env }))

const lines = (text: string) => text.split("\n").filter((line) => line !== "")

/** `serve` on a free port, with what connects to it. */
const serve = Effect.fnUntraced(function* (args: ReadonlyArray<string> = [], env: Record<string, string> = {}) {
  const home = yield* temporaryFolder
  const program = yield* startProgram([CLI, "serve", "--port", "0", ...args], { HOME: home, ...env })
  yield* program.until((stdout) => /ws:\/\/127\.0\.0\.1:\d+/.test(stdout))
  const url = /ws:\/\/127\.0\.0\.1:(\d+)/.exec(program.stdout())
  const listener = Layer.succeed(WebSocketListener, { url: url?.[0] ?? "", port: Number(url?.[1]) })
  return { ...program, port: Number(url?.[1]), connected: Effect.provide(listener) }
})

const events = (stdout: string): ReadonlyArray<Record<string, unknown>> => lines(stdout).map((line) => JSON.parse(line))

describe("effect-frontend-tools", () => {
  it("has the version of its manifest", () => {
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
    assert.strictEqual(VERSION, manifest.version)
  })

  it.live("names every command and flag in its help", () =>
    Effect.gen(function* () {
      const root = yield* cli(["--help"])
      for (const command of ["mcp", "serve", "key"]) assert.include(root.stdout, command)
      const bridge = ["port", "state-dir", "call-timeout-ms", "max-tools", "static-client", "allow-origin", "log-level"]
      for (const [command, flags] of [
        ["mcp", [...bridge, "approve-writes"]],
        ["serve", [...bridge, "json"]],
        ["key", ["namespace", "app-name"]]
      ] as const) {
        const { code, stdout } = yield* cli([command, "--help"])
        assert.strictEqual(code, 0)
        for (const flag of flags) assert.include(stdout, `--${flag}`)
      }
    })
  )

  describe("key", () => {
    it.live("prints a new key and the text to paste", () =>
      Effect.gen(function* () {
        const { code, stdout } = yield* cli(["key", "--namespace", "shop", "--app-name", "Shop"])
        assert.strictEqual(code, 0)
        const [key, ...pasted] = lines(stdout)
        assert.match(String(key), /^[0-9a-f]{64}$/)
        assert.deepStrictEqual(pasted, ["[Shop · DSH 前端工具桥接入]", "namespace: shop", `key: ${key}`])
      })
    )
  })

  describe("serve", () => {
    it.live("says where it listens, lets an admitted application in, and ends in order on a signal", () =>
      Effect.gen(function* () {
        for (const signal of ["SIGINT", "SIGTERM"] as const) {
          const { child, connected, ended, stdout } = yield* serve(["--static-client", `demo=${KEY}`])
          assert.match(stdout(), /^listening on ws:\/\/127\.0\.0\.1:\d+\n$/)
          const demo = yield* connected(openSession("demo"))
          child.kill(signal)
          assert.strictEqual(yield* demo.closed, 1001)
          assert.strictEqual((yield* ended).code, 0)
        }
      })
    )

    it.live("prints its events as JSON lines, and no key anywhere, however much it logs", () =>
      Effect.gen(function* () {
        const { child, connected, ended, port, stdout, until } = yield* serve(
          ["--json", "--static-client", `demo=${KEY}`, "--log-level", "all"],
          {}
        )
        const demo = yield* connected(openSession("demo"))
        demo.say({
          type: "register",
          tools: [{ name: "read", description: "", parametersSchema: { type: "object" } }]
        })
        yield* demo.next
        demo.say({ type: "unregister", names: ["read"] })
        yield* demo.next
        const stranger = yield* connected(openSocket())
        yield* stranger.opened
        stranger.say({ type: "hello", protocol: 5, key: "wrong-key" })
        yield* stranger.closed
        demo.socket.close()
        yield* until((said) => said.includes("session_closed"))
        assert.deepStrictEqual(events(stdout()), [
          { event: "listening", url: `ws://127.0.0.1:${port}`, port },
          { event: "session_opened", namespace: "demo" },
          { event: "tools_registered", namespace: "demo", names: ["demo__read"] },
          { event: "tools_unregistered", namespace: "demo", names: ["read"] },
          { event: "handshake_refused", reason: "auth_failed" },
          { event: "session_closed", namespace: "demo", reason: "the application left" }
        ])
        child.kill("SIGTERM")
        const all = yield* ended
        for (const secret of [KEY, "wrong-key"]) assert.notInclude(all.stdout + all.stderr, secret)
        assert.include(all.stderr, "session opened")
      })
    )

    it.live("takes its settings from the environment, and a flag before that", () =>
      Effect.gen(function* () {
        const env = {
          FRONTEND_TOOLS_STATIC_CLIENTS: `shop=shop-key,demo=${KEY}`,
          FRONTEND_TOOLS_ALLOWED_ORIGINS: "https://shop.example",
          FRONTEND_TOOLS_MAX_TOOLS: "0"
        }
        const { connected } = yield* serve(["--max-tools", "1"], env)
        const refused = yield* connected(openSocket({ origin: "https://evil.example" }))
        assert.include((yield* refused.failed).message, "403")
        yield* connected(openSession("shop"))
        const demo = yield* connected(openSession("demo", { origin: "https://shop.example" }))
        const register = (...names: ReadonlyArray<string>) =>
          demo.say({
            type: "register",
            tools: names.map((name) => ({ name, description: "", parametersSchema: { type: "object" } }))
          })
        register("a", "b")
        assert.deepInclude(yield* demo.next, { code: "too_many_tools" })
        register("a")
        assert.deepInclude(yield* demo.next, { type: "registered" })
      })
    )

    it.live("takes repeated flags", () =>
      Effect.gen(function* () {
        const { connected } = yield* serve(["--static-client", "shop=shop-key", "--static-client", `demo=${KEY}`])
        yield* connected(openSession("shop"))
        yield* connected(openSession("demo"))
      })
    )
  })

  describe("what cannot start says so in one line, and leaves nothing running", () => {
    const fails = (name: string, args: ReadonlyArray<string>, message: RegExp, env?: Record<string, string>) =>
      it.live(name, () =>
        Effect.gen(function* () {
          const { code, stderr, stdout } = yield* cli(args, env)
          assert.isAbove(code ?? 0, 0)
          assert.strictEqual(stdout, "")
          assert.strictEqual(lines(stderr).length, 1, stderr)
          assert.match(stderr, message)
          assert.notInclude(stderr, "secret")
        })
      )

    fails("a port out of range", ["serve", "--port", "99999"], /port must be an integer from 0 to 65535/)
    fails("a port that is no number", ["serve", "--port", "x"], /--port/)
    fails("an unknown flag", ["serve", "--prt", "1"], /--prt.*--help/)
    fails("an unknown command", ["sevre"], /sevre/)
    fails("a deadline of nothing", ["mcp", "--call-timeout-ms", "0"], /callTimeoutMs must be an integer from 1/)
    fails("an unknown approval", ["mcp", "--approve-writes", "maybe"], /approve-writes/)
    fails("a namespace that is none", ["key", "--namespace", "a b"], /namespace/)
    fails(
      "a static client without a namespace",
      ["serve", "--port", "0", "--static-client", "=secret"],
      /frontend-tools namespace "" must match/
    )
    fails(
      "static clients that collide",
      ["serve", "--port", "0", "--static-client", "a=secret1", "--static-client", "a__b=secret2"],
      /static client namespace "a__b" collides with "a"/
    )
    fails("a bad variable", ["serve"], /FRONTEND_TOOLS_PORT/, { FRONTEND_TOOLS_PORT: "many" })

    it.live("a malformed roster", () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        writeFileSync(`${folder}/frontend-tools-clients.json`, "{")
        const { code, stderr } = yield* cli(["serve", "--port", "0", "--state-dir", folder])
        assert.isAbove(code ?? 0, 0)
        assert.deepStrictEqual(lines(stderr), [
          "effect-frontend-tools: frontend-tools client roster is not valid JSON: SyntaxError at position 1 (line 1 column 2)"
        ])
      })
    )

    it.live("a port that is taken", () =>
      Effect.gen(function* () {
        const first = yield* serve()
        const { code, stderr } = yield* cli(["serve", "--port", String(first.port)])
        assert.isAbove(code ?? 0, 0)
        assert.deepStrictEqual(lines(stderr), [
          `effect-frontend-tools: listen EADDRINUSE: address already in use 127.0.0.1:${first.port}`
        ])
      })
    )
  })

  describe("mcp", () => {
    it.live("says on standard error where it listens, and nothing but MCP on standard output", () =>
      Effect.gen(function* () {
        const port = yield* freePort
        const home = yield* temporaryFolder
        const program = yield* startProgram([CLI, "mcp", "--port", String(port), "--approve-writes", "always"], {
          HOME: home
        })
        yield* program.until((_, stderr) => stderr.includes(`listening on ws://127.0.0.1:${port}`))
        const initialize = {
          jsonrpc: "2.0",
          id: 1,
          method: "initialize",
          params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
        }
        program.child.stdin.write(`${JSON.stringify(initialize)}\n`)
        yield* program.until((stdout) => stdout.includes("\n"))
        program.child.stdin.end()
        const { code, stderr, stdout } = yield* program.ended
        assert.strictEqual(code, 0)
        for (const line of lines(stdout)) assert.deepInclude(JSON.parse(line), { jsonrpc: "2.0" })
        assert.include(stderr, "writes run without asking anybody")
      })
    )
  })
})

describe("npm start", () => {
  it.live("plays a read and an approved write through a real socket", () =>
    Effect.gen(function* () {
      const { code, stdout } = yield* runProgram(["examples/start.ts", "--once"], { FRONTEND_TOOLS_PORT: "0" })
      assert.strictEqual(code, 0, stdout)
      for (const said of ["listening on ws://", "todo__list_todos", "todo__add_todo", "Read the README"]) {
        assert.include(stdout, said)
      }
    })
  )

  it.live("stays up with the next steps, on another port when its own is taken, until a signal", () =>
    Effect.gen(function* () {
      const taken = yield* serve()
      const program = yield* startProgram(["examples/start.ts"], { FRONTEND_TOOLS_PORT: String(taken.port) })
      yield* program.until((stdout) => stdout.includes("mcpServers"))
      assert.include(program.stdout(), `cannot have port ${taken.port}`)
      assert.match(program.stdout(), /a todo page to try in a browser is at http:\/\/127\.0\.0\.1:\d+/)
      program.child.kill("SIGINT")
      assert.strictEqual((yield* program.ended).code, 0)
    })
  )
})
