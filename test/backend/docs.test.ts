import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Script } from "../../src/layers/backend/ScriptedModel.ts"

const path = (relative: string) => fileURLToPath(new URL(`../../${relative}`, import.meta.url))
const page = readFileSync(path("docs/backend.md"), "utf8")
const block = (language: string) => page.split(`\`\`\`${language}\n`)[1]?.split("```")[0] ?? ""

/** Runs the snippet as a program on a free port. */
const program = Effect.acquireRelease(
  Effect.promise(async () => {
    const child = spawn(process.execPath, [path("examples/host-backend.ts"), ":memory:"], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, PORT: "0" }
    })
    const url = await new Promise<string>((resolve, reject) => {
      let printed = ""
      child.once("exit", () => reject(new Error(`it ended: ${printed}`)))
      child.stdout.on("data", (chunk) => {
        printed += String(chunk)
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)
        if (found !== null) resolve(found[0])
      })
    })
    return { child, url }
  }),
  ({ child }) =>
    Effect.promise(async () => {
      child.kill("SIGKILL")
    })
)

describe("docs/backend.md", () => {
  it("shows the example as it is", () => {
    const example = readFileSync(path("examples/host-backend.ts"), "utf8")
    assert.strictEqual(block("ts"), example.replace('"../src/backend.ts"', '"effect-frontend-tools/backend"'))
  })

  it("shows a script that is one", () => {
    const script = Schema.decodeUnknownSync(Schema.fromJsonString(Script))(block("json"))
    assert.strictEqual(script.rules.length, 2)
  })

  it.live(
    "the example hosts a turn from its start to its end",
    () =>
      Effect.gen(function* () {
        const { url } = yield* program
        const ask = (endpoint: string, body: unknown) =>
          Effect.promise(() =>
            fetch(url + endpoint, {
              method: "POST",
              headers: { authorization: "Bearer token-of-ada" },
              body: JSON.stringify(body)
            }).then((response) => response.text())
          )
        const client = { surface: "web/shop" }
        const id = crypto.randomUUID()
        const started = yield* ask("/ai/agents/assistant", {
          conversation_id: id,
          is_new: true,
          user_input: "hi",
          client
        })
        assert.match(started, /"tool_completed".*"sky":"clear"/)
        const [, callId] =
          /"event":"tool_delegated","call_id":"([^"]+)","tool_name":"shop__add_to_cart"/.exec(started) ?? []
        const results = [{ call_id: callId, tool_name: "shop__add_to_cart", output: "added" }]
        assert.match(yield* ask(`/ai/conversations/${id}/tool_results`, { results }), /"continuation_needed":true/)
        assert.match(yield* ask(`/ai/conversations/${id}/resume`, { client }), /"t":"cart\."/)
        const health = yield* Effect.promise(() => fetch(`${url}/health`).then((response) => response.text()))
        assert.strictEqual(health, "ok")
      }),
    { timeout: 30_000 }
  )
})
