/** The README's code is the examples' code, and the examples are run here as written. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { Effect, Schedule, Schema } from "effect"
import { BridgeOptions } from "../src/layers/bridge/BridgeConfig.ts"
import { generateClientKey } from "../src/protocol.ts"
import { freePort } from "./support/freePort.ts"
import { startProgram } from "./support/program.ts"
import { temporaryFolder } from "./support/temporaryFolder.ts"

const root = join(import.meta.dirname, "..")
const read = (file: string) => readFileSync(join(root, file), "utf8")

const blocks = ["README.md", "docs/applications-browser.md"].flatMap((file) =>
  Array.from(read(file).matchAll(/<!-- (examples\/\S+) -->\n```\w+\n([\s\S]*?)\n```/g))
)

describe("README", () => {
  it("shows examples as they are", () => {
    assert.isAbove(blocks.length, 0)
    for (const [, file = "", code] of blocks) assert.strictEqual(code, read(file).trimEnd(), file)
  })

  it("shows parts of examples as they are", () => {
    const parts = Array.from(read("README.md").matchAll(/<!-- part of (examples\/\S+) -->\n```\w+\n([\s\S]*?)\n```/g))
    assert.isAbove(parts.length, 0)
    for (const [, file = "", code = ""] of parts) assert.include(read(file), code, file)
  })

  it("links to what is there", () => {
    for (const page of ["README.md", "README.zh.md", ...globSync("docs/*.md", { cwd: root })]) {
      for (const [, target = ""] of read(page).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
        assert.isTrue(existsSync(join(root, dirname(page), target)), `${page} links to ${target}`)
      }
    }
  })

  it("lists the plugin's settings with their defaults, in both languages", () => {
    const defaults = Schema.decodeUnknownSync(BridgeOptions)({})
    for (const file of ["README.md", "README.zh.md"]) {
      const table = read(file).split("| `config` ")[1]?.split("\n\n")[0] ?? ""
      const rows = new Map(
        Array.from(table.matchAll(/^\| `(\w+)` +\| (.+?) +\|/gm), ([, name = "", value = ""]): [string, string] => [
          name,
          value
        ])
      )
      assert.strictEqual(rows.size, 8, file)
      for (const name of rows.keys()) assert.property(BridgeOptions.fields, name)
      for (const name of ["port", "callTimeoutMs", "maxTools", "handshakeTimeoutMs"] as const) {
        assert.strictEqual(rows.get(name), String(defaults[name]), file)
      }
    }
  })

  it.live("leads an MCP client to a function of a program of one's own", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const key = generateClientKey()
      const HOME = yield* temporaryFolder
      const client = new Client({ name: "reader", version: "1" }, { capabilities: { elicitation: { form: {} } } })
      const asked: Array<string> = []
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        asked.push(params.message)
        return { action: "accept" }
      })
      yield* Effect.acquireRelease(
        Effect.promise(() =>
          client.connect(
            new StdioClientTransport({
              command: process.execPath,
              args: [join(root, "dist/cli.js"), "mcp", "--port", String(port), "--log-level", "none"],
              env: { HOME, FRONTEND_TOOLS_STATIC_CLIENTS: `todo=${key}` },
              stderr: "ignore"
            })
          )
        ),
        () => Effect.promise(() => client.close())
      )
      yield* startProgram(["examples/application.mjs"], {
        TODO_KEY: key,
        BRIDGE_URL: `ws://127.0.0.1:${port}`
      })
      yield* Effect.promise(() => client.listTools()).pipe(
        Effect.filterOrFail(({ tools }) => tools.some(({ name }) => name === "todo__add")),
        Effect.retry(Schedule.spaced("50 millis")),
        Effect.timeout("20 seconds")
      )
      const call = (name: string, args: Record<string, unknown> = {}) =>
        Effect.promise(() => client.callTool({ name, arguments: args }))
      yield* call("todo__add", { title: "Call a tool" })
      assert.deepInclude(yield* call("todo__list"), {
        content: [{ type: "text", text: JSON.stringify(["Read the README", "Call a tool"], null, 2) }]
      })
      assert.strictEqual(asked.length, 1)
      for (const said of ["todo", "add", "Call a tool"]) assert.include(asked[0], said)
    })
  )

  it.live("embeds the bridge in a program", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const key = generateClientKey()
      const HOME = yield* temporaryFolder
      const program = yield* startProgram(["examples/embed.ts"], {
        HOME,
        FRONTEND_TOOLS_PORT: String(port),
        FRONTEND_TOOLS_STATIC_CLIENTS: `todo=${key}`
      })
      yield* program.until((stdout) => stdout.includes("applications connect to"))
      yield* startProgram(["examples/five-minutes.mjs"], { TODO_KEY: key, BRIDGE_URL: `ws://127.0.0.1:${port}` })
      yield* program.until((stdout) => stdout.includes('todo__list answered ["Read the README"]'))
    })
  )
})
