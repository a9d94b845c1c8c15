import { spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { inline } from "./support/backend.ts"

const main = fileURLToPath(new URL("support/backendCommand.ts", import.meta.url))

/** Starts the command; answers with its address and a way to end it as Ctrl-C does. */
const startCommand = (...flags: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, [main, "backend", ...flags], { stdio: ["ignore", "pipe", "inherit"] })
      const [line] = await once(createInterface(child.stdout), "line")
      const stop = async () => {
        if (child.exitCode !== null) return child.exitCode
        child.kill("SIGINT")
        const [code] = await once(child, "exit")
        return code
      }
      return { line: String(line), url: String(line).replace("listening on ", ""), stop }
    }),
    ({ stop }) => Effect.promise(stop)
  )

const ask = (url: string, path: string, body: unknown) =>
  Effect.promise(() =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "x-fingerprint-id": "someone" },
      body: JSON.stringify(body)
    }).then((response) => response.text())
  )

describe("the backend command", () => {
  it.live(
    "serves a script and its catalog, and keeps conversations in its file",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const script = `${folder}/script.json`
        writeFileSync(
          script,
          JSON.stringify({
            catalog: [
              {
                name: "page:look",
                description: "Looks.",
                inputSchema: { type: "object", properties: {} },
                executors: ["matrx-user"]
              }
            ],
            rules: [
              { when: "look", answers: [{ calls: [{ tool: "page__look" }] }, { text: "seen" }] },
              { answers: [{ text: "hello" }] }
            ]
          })
        )
        const flags = ["--db", `${folder}/kept.db`, "--script", script]
        const first = yield* startCommand(...flags)
        assert.match(first.line, /^listening on http:\/\/127\.0\.0\.1:\d+$/)
        const id = crypto.randomUUID()
        const started = yield* ask(first.url, "/ai/agent/any", {
          conversation_id: id,
          is_new: true,
          user_input: "look around",
          client: { surface: "web/demo" },
          tools: [{ kind: "registered", name: "page:look" }]
        })
        assert.match(started, /"event":"tool_delegated"/)
        assert.strictEqual(yield* Effect.promise(first.stop), 130)

        const second = yield* startCommand(...flags)
        const callId = /"pending_call_ids":\["([^"]+)"/.exec(started)?.[1]
        yield* ask(second.url, `/ai/conversations/${id}/tool_results`, {
          results: [{ call_id: callId, tool_name: "page__look", output: 1 }]
        })
        assert.match(yield* ask(second.url, `/ai/conversations/${id}/resume`, {}), /"t":"seen"/)
      }),
    { timeout: 30_000 }
  )

  it.live(
    "without a script its model calls what it is told to",
    () =>
      Effect.gen(function* () {
        const { url } = yield* startCommand("--port", "0")
        const said = yield* ask(url, "/ai/agent/any", {
          user_input: 'call greet {"name":"Ada"}',
          tools: [inline("greet")]
        })
        assert.match(said, /"tool_name":"greet".*"arguments":\{"name":"Ada"\}/)
        assert.match(yield* ask(url, "/ai/agent/any", { user_input: "hi", tools: [inline("greet")] }), /greet/)
      }),
    { timeout: 30_000 }
  )
})
