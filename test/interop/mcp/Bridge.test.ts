import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { generateClientKey } from "../../../src/domain/bridge/ClientKey.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { mcpSuite } from "./mcpSuite.ts"
import { connectShop, freePort } from "./shopClient.ts"

mcpSuite("A connected application", (extra) =>
  Effect.gen(function* () {
    const port = yield* freePort
    const key = generateClientKey()
    const program = fileURLToPath(new URL("./bridge.ts", import.meta.url))
    return {
      command: process.execPath,
      args: [program, "--port", String(port), "--state-dir", yield* temporaryFolder, "--key", key, ...extra],
      connect: connectShop({ port, key }),
      // Version 5 of the bridge protocol does not tell an application of an abort.
      tellsAborts: false
    }
  })
)
