import { readFileSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { driveTurn, inspect, startClientProcess, startServer } from "./support/crashLoop.ts"

/** `npm run test:crash` asks for more. */
const kills = Number(process.env.CRASH_KILLS ?? 3)

/** Turns in flight at every kill. */
const TURNS = 3

/** How long after a request is sent a kill may come. */
const LATER_MILLIS = 20

describe("a backend that is killed at any moment", () => {
  it.live(
    `${kills} kills: no message is lost, no position used twice, every call has one result, every turn finishes`,
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const database = `${folder}/ledger.db`
        const log = `${folder}/notes.log`
        writeFileSync(log, "")
        yield* Effect.promise(async () => {
          let server = await startServer(database, log)
          const { port } = server
          const conversations: Array<string> = []
          let requests = 0
          let onRequest = () => {}
          const batch = async () => {
            requests = 0
            const ids = Array.from({ length: TURNS }, () => crypto.randomUUID())
            conversations.push(...ids)
            const counted = () => {
              requests++
              onRequest()
            }
            await Promise.all(ids.map((id) => driveTurn(id, port, counted)))
          }
          try {
            // How many requests undisturbed turns take says when a kill meets one.
            await batch()
            const undisturbed = requests
            let met = 0
            for (let kill = 0; kill < kills; kill++) {
              const at = 1 + Math.floor(Math.random() * undisturbed)
              const reached = new Promise<void>((resolve) => {
                onRequest = () => {
                  if (requests === at) resolve()
                }
              })
              let finished = false
              const turns = batch().then(() => {
                finished = true
              })
              await reached
              await new Promise((resolve) => setTimeout(resolve, Math.random() * LATER_MILLIS))
              if (!finished) met++
              await server.kill()
              server = await startServer(database, log, port)
              await turns
            }
            assert.deepStrictEqual(inspect(database, log, conversations), [])
            assert.isAtLeast(met, kills / 2, "the kills came too late to mean anything")
          } finally {
            await server.kill()
          }
        })
      }),
    { timeout: 30_000 + kills * 10_000 }
  )

  it.live(
    "backend and client are killed in turn: the client's next process finishes the turn, no tool runs twice",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const database = `${folder}/ledger.db`
        const notes = `${folder}/notes.log`
        const looks = `${folder}/looks.log`
        writeFileSync(notes, "")
        writeFileSync(looks, "")
        yield* Effect.promise(async () => {
          const id = crypto.randomUUID()
          let server = await startServer(database, notes)
          const { port } = server
          const start = () => startClientProcess(port, id, `${folder}/client`, looks)
          let client = start()
          try {
            for (let kill = 0; kill < 4; kill++) {
              // Long enough for a process to get to work, short enough to meet it there.
              await new Promise((resolve) => setTimeout(resolve, 900 + Math.random() * 300))
              if (kill % 2 === 0) {
                await client.kill()
                client = start()
              } else {
                await server.kill()
                server = await startServer(database, notes, port)
              }
            }
            assert.isTrue(await client.done)
            assert.deepStrictEqual(inspect(database, notes, [id], ["abandoned", "client_tool_error"]), [])
            const ran = readFileSync(looks, "utf8").split("\n").filter(Boolean)
            assert.strictEqual(new Set(ran).size, ran.length)
          } finally {
            await client.kill()
            await server.kill()
          }
        })
      }),
    { timeout: 60_000 }
  )
})
