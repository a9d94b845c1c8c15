/** The examples of docs/aidream.md, run as they are, against the real backend. */
import { readFileSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { makeBadWire } from "../backend/support/badWire.ts"
import { runProgram, startProgram } from "../support/program.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
const CLI = path("../../dist/cli.js")

/** The backend command with these answers. */
const startBackend = Effect.fnUntraced(function* (folder: string, answers: ReadonlyArray<unknown>) {
  writeFileSync(`${folder}/script.json`, JSON.stringify({ rules: [{ answers }] }))
  const db = `${folder}/backend.db`
  const program = yield* startProgram([CLI, "backend", "--db", db, "--script", `${folder}/script.json`])
  yield* program.until((stdout) => stdout.includes("\n"))
  return { url: program.stdout().trim().replace("listening on ", ""), db }
})

const page = readFileSync(path("../../docs/aidream.md"), "utf8")

describe("docs/aidream.md", () => {
  it("shows the examples as they are", () => {
    const blocks = Array.from(page.matchAll(/<!-- (examples\/\S+) -->\n```\w+\n([\s\S]*?)\n```/g))
    assert.deepStrictEqual(
      blocks.map(([, file]) => file),
      ["examples/remote-agent.ts", "examples/extension-worker.ts"]
    )
    for (const [, file = "", code] of blocks) {
      assert.strictEqual(code, readFileSync(path(`../../${file}`), "utf8").trimEnd(), file)
    }
  })

  it.live("the Effect program runs a turn with two of its tools", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { url } = yield* startBackend(folder, [
        { calls: [{ tool: "read_clock" }, { tool: "notify", arguments: { text: "Tea is ready" } }] },
        { text: "Tea time." }
      ])
      const { code, stderr, stdout } = yield* runProgram(["examples/remote-agent.ts"], {
        BACKEND_URL: url,
        BACKEND_TOKEN: "ada",
        JOURNAL: `${folder}/journal`
      })
      assert.strictEqual(code, 0, stderr)
      for (const said of [
        "may it run notify? yes\nnotice: Tea is ready\n",
        "suspended until its calls are answered\n",
        "Tea time.\nthe turn is complete\n"
      ]) {
        assert.include(stdout, said)
      }
    })
  )

  it.live("the extension's worker dies twice in one turn, and each of its tools runs once", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const backend = yield* startBackend(folder, [
        { calls: [{ tool: "page_title" }, { tool: "open_page", arguments: { url: "https://tea.test/" } }] },
        { text: "Opened." }
      ])
      let deaf = false
      const wire = yield* makeBadWire({
        port: () => Number(new URL(backend.url).port),
        mishap: (to) => (deaf && to.endsWith("/tool_results") ? "lost" : "none"),
        at: () => 0
      })
      writeFileSync(`${folder}/storage.json`, JSON.stringify({ settings: { backendUrl: wire.url, token: "ada" } }))
      const startWorker = Effect.gen(function* () {
        const worker = yield* startProgram([path("support/extensionHost.ts"), folder])
        yield* worker.until((stdout) => stdout.includes('{"alarm":"replay","periodInMinutes":1}'))
        return {
          ...worker,
          panel: (message: object) => worker.child.stdin.write(`${JSON.stringify(message)}\n`),
          kill: Effect.andThen(
            Effect.sync(() => worker.child.kill("SIGKILL")),
            worker.ended
          )
        }
      })
      const conversationId = crypto.randomUUID()
      const asks = (stdout: string) => stdout.includes('"questions":[{') && stdout.includes('"tool":"open_page"')

      const first = yield* startWorker
      first.panel({ _tag: "Ask", agentId: "assistant", conversationId, text: "Open the tea shop" })
      yield* first.until(asks)
      yield* first.until((stdout) => stdout.includes('"CallSettled"') && stdout.includes('"suspended":true'))
      assert.include(first.stdout(), '"output":{"title":"Home"}')
      yield* first.kill

      // The question is asked again by itself, and its answer runs the tool; what it said does not arrive.
      deaf = true
      const second = yield* startWorker
      yield* second.until(asks)
      const callId = /"callId":"([^"]+)"/.exec(second.stdout().slice(second.stdout().indexOf("questions")))?.[1]
      second.panel({ _tag: "Decide", conversationId, callId, allow: true })
      const tabs = Effect.try(() => readFileSync(`${folder}/tabs.txt`, "utf8"))
      const eventually = Effect.retry(Schedule.spaced("20 millis"))
      yield* eventually(tabs)
      yield* eventually(
        Effect.filterOrFail(
          Effect.try(() => readFileSync(`${folder}/storage.json`, "utf8")),
          (stored) => stored.includes('\\"Finished\\"')
        )
      )
      yield* second.kill

      // Nobody opens anything: the alarm is all that wakes the third.
      deaf = false
      const third = yield* startWorker
      third.child.stdin.write("alarm\n")
      const db = new DatabaseSync(backend.db, { readOnly: true })
      yield* Effect.addFinalizer(() => Effect.sync(() => db.close()))
      yield* eventually(
        Effect.filterOrFail(
          Effect.sync(() => db.prepare("SELECT status FROM user_requests").all()),
          ([turn]) => turn?.status === "completed"
        )
      )
      assert.strictEqual(yield* tabs, "https://tea.test/\n")
      assert.deepStrictEqual(
        db
          .prepare("SELECT tool_name, status FROM tool_calls ORDER BY tool_name")
          .all()
          .map((row) => ({ ...row })),
        [
          { tool_name: "open_page", status: "completed" },
          { tool_name: "page_title", status: "completed" }
        ]
      )
      yield* eventually(
        Effect.filterOrFail(
          Effect.sync(() => readFileSync(`${folder}/storage.json`, "utf8")),
          (stored) => !stored.includes("journal/aidream/calls") && !stored.includes("journal/aidream/owed")
        )
      )
    })
  )
})
