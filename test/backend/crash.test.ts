import { writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { disturbed, driveTurn, inspect, startServer } from "./support/crashLoop.ts"

/** `npm run test:crash` asks for more. */
const kills = Number(process.env.CRASH_KILLS ?? 5)

/** Turns in flight at every kill. */
const TURNS = 3

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
          const batch = () => {
            const ids = Array.from({ length: TURNS }, () => crypto.randomUUID())
            conversations.push(...ids)
            return Promise.all(ids.map((id) => driveTurn(id, () => port)))
          }
          try {
            // How long it takes undisturbed says when a kill still meets a turn.
            await batch()
            const begun = performance.now()
            await batch()
            const span = performance.now() - begun
            for (let kill = 0; kill < kills; kill++) {
              const turns = batch()
              await new Promise((resolve) => setTimeout(resolve, Math.random() * span))
              await server.kill()
              server = await startServer(database, log, port)
              await turns
            }
            assert.deepStrictEqual(inspect(database, log, conversations), [])
            // Else the kills came too late to mean anything.
            assert.isAbove(disturbed(database), 0)
          } finally {
            await server.kill()
          }
        })
      }),
    { timeout: 30_000 + kills * 10_000 }
  )
})
