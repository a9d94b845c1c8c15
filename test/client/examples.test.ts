/** What docs/applications.md shows is what the examples are, and they run as written. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { MemoryHost, WebSocketListener } from "../../src/index.ts"
import { startProgram } from "../support/program.ts"
import { socketBridge } from "../support/socketBridge.ts"

const root = join(import.meta.dirname, "../..")
const read = (file: string) => readFileSync(join(root, file), "utf8")

const blocks = Array.from(
  read("docs/applications.md").matchAll(/<!-- (examples\/\S+) -->\n```\w+\n([\s\S]*?)\n```/g),
  ([, file = "", code = ""]) => ({ file, code })
)

describe("docs/applications.md", () => {
  it("shows the examples as they are", () => {
    assert.deepStrictEqual(
      blocks.map(({ file }) => file),
      ["examples/application.mjs", "examples/application-effect.ts"]
    )
    for (const { code, file } of blocks) assert.strictEqual(code, read(file).trimEnd(), file)
  })

  it.live.each(blocks.map(({ file }) => file))("%s offers its tools to a bridge", (file) =>
    Effect.gen(function* () {
      const { url } = yield* WebSocketListener
      const program = yield* startProgram([file], { TODO_KEY: "demo-key", BRIDGE_URL: url })
      yield* program.until((stdout) => /registered demo__list, demo__add/.test(stdout) && /^connected/m.test(stdout))
      const call = (name: string, args: unknown) =>
        MemoryHost.use((host) => host.call(name, args, () => Effect.succeed(true)))
      assert.deepStrictEqual(yield* call("demo__add", { title: "Call a tool" }), { count: 2 })
      assert.deepStrictEqual(yield* call("demo__list", {}), ["Read the README", "Call a tool"])
    }).pipe(Effect.provide(socketBridge()))
  )
})
