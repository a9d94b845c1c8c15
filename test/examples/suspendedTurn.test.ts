import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { runProgram } from "../support/program.ts"

describe("examples/suspended-turn", () => {
  it.live("chat and backend are killed in turn, and the turn ends with each tool run once", () =>
    Effect.gen(function* () {
      const { code, stderr, stdout } = yield* runProgram(["examples/suspended-turn/main.ts"])
      assert.strictEqual(code, 0, stdout + stderr)
      const told = stdout
        .split("\n")
        .filter((line) => /^(?:demo|shop|agent) /.test(line))
        .map((line) => line.replace(/--conversation .*/, "--conversation"))
      assert.deepStrictEqual(told, [
        "demo      both tools have run, no answer has arrived: kill -9 the chat",
        "demo      kill -9 the backend, and start it again",
        "demo      start the chat again with --conversation",
        "demo      the turn is suspended a second time: kill -9 the backend, and start it again",
        "agent     I look and order at once.Now I have it shipped.The hat is ordered and on its way.",
        "shop      ran: order hat, ship hat, stock",
        "demo      each tool ran once"
      ])
      // The two calls of the first suspension were answered from the journal.
      assert.include(stdout, "finds shop__stock in its journal")
      assert.include(stdout, "finds shop__order in its journal")
    })
  )
})
