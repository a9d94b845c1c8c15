import { readdirSync, readFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { build, type Rolldown } from "vite"

const root = new URL("../../src/", import.meta.url)

const sources = (folder: string): ReadonlyArray<readonly [name: string, text: string]> =>
  readdirSync(new URL(folder, root))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [name, readFileSync(new URL(`${folder}${name}`, root), "utf8")])

const outbound = [...sources("domain/aidream/"), ...sources("layers/aidream/")]

describe("the outbound half", () => {
  it("runs in a browser: no module of Node is imported", () => {
    for (const [name, text] of outbound) assert.notMatch(text, /from "(node:|@effect\/platform-node)/, name)
  })

  it("is one bundle for a browser, with nothing of Node in it", async () => {
    const missing: Array<string> = []
    const result = await build({
      root: fileURLToPath(new URL("../../", import.meta.url)),
      configFile: false,
      logLevel: "silent",
      build: {
        write: false,
        minify: true,
        lib: { entry: fileURLToPath(new URL("aidream.ts", root)), formats: ["es"] }
      },
      plugins: [
        {
          name: "no-node",
          enforce: "pre",
          resolveId: (source, importer) => {
            if (isBuiltin(source)) missing.push(`${importer} imports ${source}`)
            return null
          }
        }
      ]
    })
    assert.deepStrictEqual(missing, [])
    const chunks = [result].flat().flatMap((each) => ("output" in each ? each.output : []))
    const code = chunks.filter((chunk): chunk is Rolldown.OutputChunk => chunk.type === "chunk")
    assert.strictEqual(code.length, 1)
    assert.deepStrictEqual(code[0]?.imports, [])
    for (const name of ["AgentRuns", "layer", "layerFileStore", "makeTool"])
      assert.include(code[0]?.exports ?? [], name)
    assert.notMatch(code[0]?.code ?? "", /\b(?:process|Buffer|__dirname)\./)
  })

  it("posts results on one path only", () => {
    const names = (pattern: RegExp) => outbound.filter(([, text]) => pattern.test(text)).map(([name]) => name)
    assert.deepStrictEqual(names(/\bresultsPath\(/), ["AidreamApi.ts"])
    assert.deepStrictEqual(names(/\.postResults\(/), ["ResultsFunnel.ts"])
    assert.deepStrictEqual(names(/\)\}\/tool_results`/), ["Endpoint.ts"])
  })

  it("opens a resume on one path only", () => {
    const names = outbound.filter(([, text]) => /api\.resume\(/.test(text)).map(([name]) => name)
    assert.deepStrictEqual(names, ["AgentRuns.ts"])
  })

  it("keeps the domain below the layers", () => {
    for (const [name, text] of sources("domain/aidream/")) assert.notMatch(text, /from "[^"]*(layers|client)\//, name)
  })
})
