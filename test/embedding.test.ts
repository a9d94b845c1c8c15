/** The guide's programs are the examples' programs, and the examples are run here as written. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { generateClientKey } from "../src/protocol.ts"
import { freePort } from "./support/freePort.ts"
import { startProgram } from "./support/program.ts"
import { temporaryFolder } from "./support/temporaryFolder.ts"

const root = join(import.meta.dirname, "..")
const read = (file: string) => readFileSync(join(root, file), "utf8")

/** A program of the guide with settings of its own, and a todo list that connects to it. */
const start = Effect.fnUntraced(function* (file: string, env: Readonly<Record<string, string>> = {}) {
  const port = yield* freePort
  const key = generateClientKey()
  const folder = yield* temporaryFolder
  const program = yield* startProgram([`examples/${file}`], {
    HOME: folder,
    FRONTEND_TOOLS_PORT: String(port),
    FRONTEND_TOOLS_STATIC_CLIENTS: `todo=${key}`,
    ...env
  })
  const connect = (as = key) =>
    startProgram(["examples/five-minutes.mjs"], { TODO_KEY: as, BRIDGE_URL: `ws://127.0.0.1:${port}` })
  const type = (line: string) => Effect.sync(() => program.child.stdin.write(`${line}\n`))
  return { ...program, connect, type, folder, port }
})

describe("docs/embedding.md", () => {
  it("shows the programs as they are", () => {
    const blocks = Array.from(read("docs/embedding.md").matchAll(/<!-- (examples\/\S+) -->\n```\w+\n([\s\S]*?)\n```/g))
    assert.deepStrictEqual(
      blocks.map(([, file]) => file),
      ["examples/embed-agent.ts", "examples/embed-host.ts", "examples/embed-sql-roster.ts"]
    )
    for (const [, file = "", code] of blocks) assert.strictEqual(code, read(file).trimEnd(), file)
  })

  it("names nothing that does not exist", async () => {
    // The programs are the compiler's to judge.
    const text = read("docs/embedding.md").replaceAll(/<!-- examples[\s\S]*?\n```\n/g, "")
    const entries = Array.from(text.matchAll(/"effect-frontend-tools(\/[a-z]+)?"/g), ([, path = ""]) => path)
    const manifest = JSON.parse(read("package.json"))
    for (const path of entries) assert.property(manifest.exports, `.${path}`)
    const modules: Record<string, unknown> = {
      ...(await import("../src/index.ts")),
      ...(await import("../src/toolkit.ts")),
      ...(await import("../src/testing.ts")),
      ...(await import("../src/mcp.ts"))
    }
    const layers = Array.from(text.matchAll(/\b([A-Z]\w+)\.(layer\w*|member|read|write|connect)\b/g))
    assert.isAbove(layers.length, 15)
    for (const [called, module = "", member = ""] of layers) {
      const found = modules[module]
      assert.isTrue(
        (typeof found === "object" || typeof found === "function") && found !== null && member in found,
        called
      )
    }
  })
})

describe("the programs of the guide", () => {
  it.live("run an agent whose writes are asked about", () =>
    Effect.gen(function* () {
      const agent = yield* start("embed-agent.ts")
      yield* agent.until((stdout) => stdout.includes("applications connect to"))
      yield* agent.connect()
      yield* agent.until((stdout) => stdout.includes("[y/N]"))
      for (const part of ["Application: todo", "Tool: add (todo__add)", '"title": "Buy milk"']) {
        assert.include(agent.stdout(), part)
      }
      yield* agent.type("y")
      yield* agent.until((stdout) => stdout.includes("Milk is on your list."))
      assert.include(agent.stdout(), 'todo__list: ["Read the README","Buy milk"]')
    })
  )

  it.live("let a person at the terminal be the model", () =>
    Effect.gen(function* () {
      const host = yield* start("embed-host.ts")
      yield* host.until((stdout) => stdout.includes("applications connect to"))
      yield* host.type("")
      yield* host.until((stdout) => stdout.includes("frontend_tools_list_clients (read)"))
      yield* host.type("frontend_tools_list_clients")
      yield* host.until((stdout) => stdout.includes('"namespace":"todo","connected":false'))
      const application = yield* host.connect()
      yield* application.until((stdout) => stdout.includes("registered"))
      yield* host.type('todo__add {"title":"tea"}')
      yield* host.until((stdout) => stdout.includes("[y/N]"))
      yield* host.type("n")
      yield* host.until((stdout) => stdout.includes('the user rejected tool "todo__add"'))
      yield* host.type("todo__list")
      yield* host.until((stdout) => stdout.includes('["Read the README"]'))
      yield* host.type("todo__list {")
      yield* host.until((stdout) => stdout.includes("SyntaxError"))
    })
  )

  it.live("keep who may connect in a database", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const key = generateClientKey()
      const env = { DATABASE: join(folder, "clients.sqlite"), FRONTEND_TOOLS_STATIC_CLIENTS: "" }
      const first = yield* start("embed-sql-roster.ts", { ...env, TODO_KEY: key })
      yield* first.until((stdout) => stdout.includes("todo may connect to"))
      yield* first.connect(key)
      yield* first.until((stdout) => stdout.includes('"names":["todo__list","todo__add"]'))
      first.child.kill("SIGINT")
      yield* first.ended
      // Another start on the same database knows it, and nobody else.
      const second = yield* start("embed-sql-roster.ts", env)
      yield* second.until((stdout) => stdout.includes("todo may connect to"))
      const stranger = yield* second.connect()
      yield* stranger.until((stdout) => stdout.includes("auth_failed"))
      yield* second.connect(key)
      yield* second.until((stdout) => stdout.includes('"names":["todo__list","todo__add"]'))
      assert.notInclude(readFileSync(env.DATABASE, "latin1"), key)
    })
  )
})
