/**
 * The same suite against the built command line, with the published client of the
 * peer as the application behind it: everything between a model's client and a
 * function inside another program is real.
 */
import { fileURLToPath } from "node:url"
import { createFrontendToolsClient } from "dsh-frontend-tools-client"
import { Effect, Schedule } from "effect"
import { generateClientKey } from "../../../src/protocol.ts"
import { freePort } from "../../support/freePort.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { mcpSuite } from "./mcpSuite.ts"
import { makeShop, SHOP_NAMESPACE } from "./shop.ts"

const cli = fileURLToPath(new URL("../../../dist/cli.js", import.meta.url))

const connectShop = (url: string, key: string) =>
  Effect.acquireRelease(
    Effect.tryPromise(async () => {
      const client = createFrontendToolsClient({ url, key, reconnect: false })
      const register = (tool: ReturnType<typeof makeShop>[number]) =>
        client.registerTools([{ ...tool, execute: (args) => tool.execute(Object(args)) }])
      await client.connect()
      const tools = makeShop((extra, on) => (on ? register(extra) : client.unregisterTools([extra.name])))
      for (const tool of tools) await register(tool)
      return client
    }).pipe(Effect.retry(Schedule.spaced("50 millis")), Effect.timeout("10 seconds"), Effect.orDie),
    (client) => Effect.sync(() => client.disconnect())
  )

mcpSuite("The command line's mcp", (extra) =>
  Effect.gen(function* () {
    const port = yield* freePort
    const stateDir = yield* temporaryFolder
    const key = generateClientKey()
    return {
      command: process.execPath,
      args: [cli, "mcp", "--port", String(port), "--state-dir", stateDir, ...extra],
      env: { FRONTEND_TOOLS_STATIC_CLIENTS: `${SHOP_NAMESPACE}=${key}` },
      connect: Effect.asVoid(connectShop(`ws://127.0.0.1:${port}`, key)),
      // The peer's client cannot be told that a call was given up.
      tellsAborts: false
    }
  })
)
