import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { nextSteps } from "../../examples/nextSteps.ts"
import { generateClientKey } from "../../src/protocol.ts"
import { freePort } from "../support/freePort.ts"
import { startProgram } from "../support/program.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

/** A command line as `npm start` prints it: its variables, and what node is given. */
const parse = (line: string) => {
  const words = line.trim().split(" ")
  const program = words.findIndex((word) => !word.includes("="))
  return { args: words.slice(program + 1), variables: words.slice(0, program).map((word) => word.replaceAll('"', "")) }
}

describe("npm start", () => {
  it.live("prints two commands that let a remote agent use the todo list", () =>
    Effect.gen(function* () {
      const steps = nextSteps("ws://127.0.0.1:31870").split("\n")
      const find = (what: string) => parse(steps.find((line) => line.includes(what)) ?? "")
      const [bridgePort, backendPort] = [yield* freePort, yield* freePort]
      const key = generateClientKey()
      const here = (args: ReadonlyArray<string>) => args.map((word) => word.replace("8080", String(backendPort)))

      const backend = yield* startProgram(here(find(" backend --port ").args))
      yield* backend.until((stdout) => stdout.includes("listening on"))

      const chat = find(" chat --base-url ")
      assert.deepStrictEqual(chat.variables, ["FRONTEND_TOOLS_STATIC_CLIENTS=todo=<KEY>"])
      const talk = yield* startProgram(here(chat.args), {
        HOME: yield* temporaryFolder,
        FRONTEND_TOOLS_STATIC_CLIENTS: `todo=${key}`,
        FRONTEND_TOOLS_PORT: String(bridgePort)
      })
      yield* talk.until((_, stderr) => stderr.includes("applications connect to"))
      const todo = yield* startProgram(find("todo-list/main.ts").args, {
        FRONTEND_TOOLS_KEY: key,
        FRONTEND_TOOLS_URL: `ws://127.0.0.1:${bridgePort}`
      })
      yield* todo.until((stdout) => stdout.includes("connected to"))
      talk.child.stdin.end("What is on my list?\n")
      const { code, stderr, stdout } = yield* talk.ended
      assert.strictEqual(code, 0, stderr)
      assert.include(stderr, "Try effect-frontend-tools")
      assert.match(stdout, /^I look at your list\.That is what is on it\./)
    })
  )
})
