/**
 * `npm run size`: what an application's users download, minified and gzipped, with and
 * without Effect in it. Fails when an entry is over its budget.
 */
import { gzipSync } from "node:zlib"
import { type InputOptions, rolldown } from "rolldown"

const KB = 1024

interface Entry {
  readonly name: string
  /** Program text; what it exports or uses is what is measured. */
  readonly program: string
  readonly budget?: number
}

const source = (file: string) => JSON.stringify(new URL(`../src/${file}`, import.meta.url).pathname)

const entries: ReadonlyArray<Entry> = [
  { name: "effect-frontend-tools/promise", program: `export * from ${source("promise.ts")}`, budget: 36 * KB },
  { name: "effect-frontend-tools/protocol", program: `export * from ${source("protocol.ts")}`, budget: 28 * KB },
  {
    name: "{ createFrontendToolsClient } of ./client",
    program: `export { createFrontendToolsClient } from ${source("client.ts")}`,
    budget: 36 * KB
  },
  {
    name: "{ FrontendToolsClient, Tool } of ./client",
    program: `export { FrontendToolsClient, Tool } from ${source("client.ts")}`
  }
]

const measure = async (program: string, external: InputOptions["external"] = []) => {
  const bundle = await rolldown({
    input: "entry",
    platform: "browser",
    external,
    plugins: [
      {
        name: "entry",
        resolveId: (id) => (id === "entry" ? id : null),
        load: (id) => (id === "entry" ? program : null)
      }
    ]
  })
  const { output } = await bundle.generate({ format: "esm", minify: true })
  const [chunk] = output
  const strangers = chunk.imports.filter((id) => !id.startsWith("effect"))
  if (strangers.length > 0) throw new Error(`not for a browser: ${strangers.join(", ")}`)
  return gzipSync(chunk.code, { level: 9 }).length
}

const kilobytes = (bytes: number) => `${(bytes / KB).toFixed(1)} KB`

let over = false
for (const { budget, name, program } of entries) {
  const whole = await measure(program)
  const own = await measure(program, /^effect($|\/)/)
  const exceeded = budget !== undefined && whole > budget
  over ||= exceeded
  console.log(
    `${name.padEnd(44)} ${kilobytes(whole).padStart(8)}${budget === undefined ? "" : ` of ${kilobytes(budget)}`}${exceeded ? "  TOO LARGE" : ""}; without effect ${kilobytes(own)}`
  )
}
if (over) process.exitCode = 1
