/** The shape of the house: who may import whom, and what each entry loads. */
import { execFileSync } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const root = join(import.meta.dirname, "..")
const files = globSync("src/**/*.ts", { cwd: root }).sort()

/** The modules a file imports for their values: our own as paths below the root, others by name. */
const importsOf = (file: string): ReadonlyArray<string> => {
  const text = readFileSync(join(root, file), "utf8")
  const found = text.matchAll(/^(?:import|export)\s(?!type\s)[^"';]*?\sfrom\s"([^"]+)"|^import\s"([^"]+)"/gm)
  return Array.from(found, ([, from, bare]) => {
    const name = from ?? bare ?? ""
    return name.startsWith(".") ? relative(root, join(root, dirname(file), name)) : name
  })
}

const graph = new Map(files.map((file) => [file, importsOf(file)]))

const reachableFrom = (entry: string): ReadonlySet<string> => {
  const seen = new Set<string>()
  const open = [entry]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    open.push(...(graph.get(file) ?? []))
  }
  return seen
}

const folder = (name: string) => files.filter((file) => file.startsWith(`src/${name}/`))

const BROWSER_SAFE = /^(?:effect(?:\/|$)|@noble\/hashes\/|@cfworker\/json-schema$|src\/)/

describe("architecture", () => {
  it("keeps the domain apart from layers, client and platform", () => {
    for (const file of folder("domain")) {
      for (const imported of importsOf(file)) {
        assert.match(imported, /^(?:effect(?:\/|$)|@noble\/hashes\/|src\/domain\/)/, `${file} imports ${imported}`)
      }
    }
  })

  it("has no import cycle", () => {
    for (const file of files) {
      for (const imported of graph.get(file) ?? []) {
        assert.isFalse(
          reachableFrom(imported).has(file) && graph.has(imported),
          `${file} and ${imported} import each other`
        )
      }
    }
  })

  it("lets hosts and the command line import the core, never the other way round", () => {
    for (const file of folder("layers/bridge")) {
      for (const imported of importsOf(file)) {
        assert.notMatch(imported, /^src\/(?:cli|client)\//, `${file} imports ${imported}`)
        assert.notMatch(
          imported,
          /^src\/layers\/host\/(?!ToolHost\.ts|SchemaProfile\.ts)/,
          `${file} imports ${imported}`
        )
      }
    }
  })

  it("takes single modules of the platform: its index needs an optional database client", () => {
    for (const [file, imports] of graph) assert.notInclude(imports, "@effect/platform-node", file)
  })

  it("keeps what a page loads free of the platform and of the bridge", () => {
    for (const entry of ["src/protocol.ts", "src/client.ts", "src/promise.ts"]) {
      for (const file of reachableFrom(entry)) {
        assert.match(file, BROWSER_SAFE, `${entry} loads ${file}`)
        assert.notMatch(file, /^src\/layers\//, `${entry} loads ${file}`)
      }
    }
  })

  it("loads neither MCP nor the command line with the main entry", () => {
    const loaded = execFileSync(
      process.execPath,
      [
        "--input-type=module",
        "--eval",
        `const { registerHooks } = await import("node:module")
         const seen = []
         registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) })
         await import("effect-frontend-tools")
         console.log(seen.join("\\n"))`
      ],
      { cwd: root, encoding: "utf8" }
    )
    assert.include(loaded, "/dist/index.js")
    assert.notMatch(loaded, /\/effect\/dist\/(?:ai|cli)\/|\/dist\/(?:mcp|cli)|Mcp/)
  })

  it("hides no fault behind a cast, an any, a timer or a console", () => {
    for (const file of files) {
      const code = readFileSync(join(root, file), "utf8")
        .replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
        // What stands in texts is prose.
        .replaceAll(/"[^"\n]*"|`[^`]*`/g, '""')
      assert.notMatch(
        code,
        /\bas (?!const\b|[A-Za-z]+(?:,|\s\}| from)|\* )|:\s*any\b|<any>|setTimeout|setInterval|Date\.now|console\./,
        file
      )
    }
  })
})
