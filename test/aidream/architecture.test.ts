import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"

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
