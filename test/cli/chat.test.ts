/** The built chat command in a process of its own, against the built backend command. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { startApplication } from "../support/application.ts"
import { runProgram, startProgram } from "../support/program.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url))
const KEY = "todo-key"
const TOKEN = "the-token-of-ada"

const script = {
  rules: [
    {
      when: "plan",
      answers: [
        { text: "Let me look.", calls: [{ tool: "todo__list" }, { tool: "todo__add", arguments: { title: "Rest" } }] },
        { text: "All planned." }
      ]
    },
    { when: "wait", answers: [{ calls: [{ tool: "todo__wait" }] }, { text: "Waited." }] },
    { when: "fail", answers: [{ fail: "the provider is down" }] },
    { answers: [{ text: "Hello." }] }
  ]
}

/** The backend command with its script, on a port of its own. */
const startBackend = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  writeFileSync(`${folder}/script.json`, JSON.stringify(script))
  const program = yield* startProgram([CLI, "backend", "--script", `${folder}/script.json`])
  yield* program.until((stdout) => stdout.includes("\n"))
  return program.stdout().trim().replace("listening on ", "")
})

const flags = (url: string) => ["chat", "--base-url", url, "--agent", "any"]

/** Starts a chat that admits `todo`, and says where its bridge is. */
const startChat = Effect.fnUntraced(function* (
  { home, port = "0", url }: { readonly url: string; readonly home: string; readonly port?: string },
  ...more: ReadonlyArray<string>
) {
  const program = yield* startProgram([CLI, ...flags(url), ...more], {
    HOME: home,
    FRONTEND_TOOLS_PORT: port,
    FRONTEND_TOOLS_STATIC_CLIENTS: `todo=${KEY}`,
    CHAT_TOKEN: TOKEN
  })
  yield* program.until((stdout, stderr) => /ws:\/\/127\.0\.0\.1:\d+/.test(stdout + stderr))
  const bridge = /ws:\/\/127\.0\.0\.1:\d+/.exec(program.stdout() + program.stderr())?.[0] ?? ""
  return { ...program, bridge }
})

// biome-ignore lint/suspicious/noExplicitAny: parsed lines, looked at by assertions only
type Event = Record<string, any>

const events = (stdout: string): ReadonlyArray<Event> =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

const conversationIn = (said: string) => /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(said)?.[0] ?? ""

/** A todo list that says what was done to it. */
const todoList = Effect.fnUntraced(function* (bridge: string, wait: (noted: undefined) => unknown = () => null) {
  const done: Array<string> = []
  const note = <A>(what: string, result: A) => {
    done.push(what)
    return result
  }
  yield* startApplication({
    url: bridge,
    namespace: "todo",
    tools: {
      list: { readOnly: true, run: () => note("list", ["Try it"]) },
      add: { run: ({ title }) => note(`add ${title}`, { added: title }) },
      wait: { readOnly: true, run: () => wait(note("wait", undefined)) }
    }
  })
  return done
})

describe("effect-frontend-tools chat", () => {
  it.live("runs what the agent delegates in an application, and prints every event as a line", () =>
    Effect.gen(function* () {
      const url = yield* startBackend
      const home = yield* temporaryFolder
      const chat = yield* startChat(
        { url, home },
        ...["--json", "--message", "plan my day", "--wait-for", "todo"],
        ...["--approve-writes", "always", "--token-env", "CHAT_TOKEN", "--log-level", "all"]
      )
      const done = yield* todoList(chat.bridge)
      const { code, stderr, stdout } = yield* chat.ended
      assert.strictEqual(code, 0, stderr)
      assert.deepStrictEqual([...done].sort(), ["add Rest", "list"])

      const all = events(stdout)
      const of = (name: string) => all.filter(({ event }) => event === name)
      assert.deepInclude(all[0], { event: "listening", url: chat.bridge })
      assert.strictEqual(of("conversation")[0]?.new, true)
      assert.deepInclude(of("tools_registered")[0], {
        namespace: "todo",
        names: ["todo__list", "todo__add", "todo__wait"]
      })
      assert.deepStrictEqual(
        of("run_opened").map(({ resumed }) => resumed),
        [false, true]
      )
      assert.deepStrictEqual(
        of("call_delegated").map(({ delegation }) => delegation.toolName),
        ["todo__list", "todo__add"]
      )
      assert.deepStrictEqual(
        of("call_settled").map(({ delivery }) => delivery),
        ["delivered", "delivered"]
      )
      assert.deepStrictEqual(
        of("run_ended").map(({ suspended }) => suspended),
        [true, false]
      )
      const text = of("stream")
        .map(({ line }) => (line.event === "chunk" ? line.data.text : ""))
        .join("")
      assert.strictEqual(text, "Let me look.All planned.")
      assert.deepInclude(all.at(-1), { event: "turn_ended", outcome: "complete" })
      for (const secret of [KEY, TOKEN]) assert.notInclude(stdout + stderr, secret)
    })
  )

  it.live(
    "takes messages from its input, keeps its output to the agent's text, and denies writes nobody can be asked about",
    () =>
      Effect.gen(function* () {
        const url = yield* startBackend
        const home = yield* temporaryFolder
        const chat = yield* startChat({ url, home }, "--wait-for", "todo")
        const done = yield* todoList(chat.bridge)
        chat.child.stdin.end("plan my day\n\nhello\n")
        const { code, stderr, stdout } = yield* chat.ended
        assert.strictEqual(code, 0, stderr)
        assert.strictEqual(stdout, "Let me look.All planned.\nHello.\n")
        assert.deepStrictEqual(done, ["list"])
        for (const said of [
          "todo offers todo__list, todo__add, todo__wait",
          'todo__list answered ["Try it"]',
          "todo__add is denied: nobody can be asked",
          "todo__add failed: The user denied this call.",
          "suspended until the calls are answered",
          "resumed"
        ]) {
          assert.include(stderr, said)
        }
      })
  )

  it.live("a chat that was killed goes on with its conversation; no call runs twice", () =>
    Effect.gen(function* () {
      const url = yield* startBackend
      const home = yield* temporaryFolder
      const started = yield* Deferred.make<void>()
      const hold = new Promise(() => {})
      const first = yield* startChat({ url, home }, "--message", "wait for me", "--wait-for", "todo")
      const port = new URL(first.bridge).port
      const done = yield* todoList(first.bridge, () => {
        Deferred.doneUnsafe(started, Effect.void)
        return hold
      })
      yield* Deferred.await(started)
      const conversation = conversationIn(first.stderr())

      const twin = yield* runProgram([CLI, ...flags(url), "--conversation", conversation, "--message", "hi"], {
        HOME: home,
        FRONTEND_TOOLS_PORT: "0"
      })
      assert.strictEqual(twin.code, 1)
      assert.include(twin.stderr, "open in another process")

      first.child.kill("SIGKILL")
      yield* first.ended
      const second = yield* startChat({ url, home, port }, "--conversation", conversation, "--message", "hello")
      const { code, stderr, stdout } = yield* second.ended
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(stdout, "Waited.\nHello.\n")
      assert.include(stderr, "The client restarted while this tool ran")
      assert.deepStrictEqual(done, ["wait"])
    })
  )

  it.live("ends on /quit at a real terminal, and a backend whose port is taken says so", () =>
    Effect.gen(function* () {
      const url = yield* startBackend
      const home = yield* temporaryFolder
      const taken = yield* runProgram([CLI, "backend", "--port", new URL(url).port])
      assert.strictEqual(taken.code, 1)
      assert.match(taken.stderr, /^effect-frontend-tools: listen EADDRINUSE.*\n$/)
      // The one tool at hand everywhere that makes a terminal; without it there is nothing to try this on.
      if (!existsSync("/usr/bin/script")) return
      const command = [process.execPath, CLI, ...flags(url), "--port", "0", "--state-dir", home].join(" ")
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("/usr/bin/script", ["-qefc", command, "/dev/null"], { env: { HOME: home } })),
        (running) => Effect.sync(() => running.kill("SIGKILL"))
      )
      let screen = ""
      let look = () => {}
      child.stdout.on("data", (piece) => {
        screen += String(piece)
        look()
      })
      const shows = (said: string) =>
        Effect.callback<void>((resume) => {
          look = () => {
            if (screen.includes(said)) resume(Effect.void)
          }
          look()
        })
      yield* shows("> ")
      child.stdin.write("hello\n")
      yield* shows("Hello.\r\n> ")
      child.stdin.write("/quit\n")
      const [code] = yield* Effect.promise(() => once(child, "close"))
      assert.strictEqual(code, 0, screen)
    })
  )

  it.live("says by its exit status how it went", () =>
    Effect.gen(function* () {
      const url = yield* startBackend
      const home = yield* temporaryFolder
      const ends = (code: number, said: RegExp, ...args: ReadonlyArray<string>) =>
        Effect.map(runProgram([CLI, ...args], { HOME: home, FRONTEND_TOOLS_PORT: "0" }), (ended) => {
          assert.strictEqual(ended.code, code, ended.stderr)
          assert.match(ended.stderr, said)
          assert.notInclude(ended.stderr, "    at ")
        })
      const message = ["--message", "hello"]
      const unknown = ["--conversation", "e4a1f3b2-0000-4000-8000-000000000000"]
      yield* Effect.all(
        [
          ends(3, /Something went wrong.*\n.*the turn failed/s, ...flags(url), "--message", "fail"),
          ends(2, /cannot be reached/, ...flags("http://127.0.0.1:9"), ...message),
          ends(2, /refused: 404 conversation_not_found/, ...flags(url), ...unknown, ...message),
          ends(1, /no token in the variable NO_TOKEN/, ...flags(url), ...message, "--token-env", "NO_TOKEN"),
          ends(1, /http or https/, ...flags("ftp://127.0.0.1"), ...message)
        ],
        { concurrency: 3 }
      )

      const chat = yield* startChat({ url, home }, "--message", "wait", "--wait-for", "todo")
      const started = yield* Deferred.make<void>()
      yield* todoList(chat.bridge, () => {
        Deferred.doneUnsafe(started, Effect.void)
        return new Promise(() => {})
      })
      yield* Deferred.await(started)
      chat.child.kill("SIGINT")
      assert.strictEqual((yield* chat.ended).code, 130)
    })
  )
})
