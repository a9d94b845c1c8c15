import { createServer } from "node:net"
import { createFrontendToolsClient } from "dsh-frontend-tools-client"
import { Effect, Schedule } from "effect"
import { makeShop } from "./shop.ts"

/** A port that is free now. Effect's MCP client keeps the program's stderr to itself, so the port has to be chosen first. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

/** Connects the shop with the published client, as soon as the bridge listens, until the scope closes. */
export const connectShop = Effect.fnUntraced(function* (options: { readonly port: number; readonly key: string }) {
  const connected = Effect.tryPromise(async () => {
    const client = createFrontendToolsClient({ url: `ws://127.0.0.1:${options.port}`, key: options.key })
    await client.connect()
    return client
  }).pipe(Effect.retry(Schedule.spaced("50 millis")), Effect.timeout("10 seconds"), Effect.orDie)
  const client = yield* Effect.acquireRelease(connected, (open) => Effect.promise(async () => open.disconnect()))
  const toTool = (tool: ReturnType<typeof makeShop>[number]) => ({
    ...tool,
    execute: (args: unknown) => tool.execute(Object(args))
  })
  const tools = makeShop((extra, on) =>
    on ? client.registerTools([toTool(extra)]) : client.unregisterTools([extra.name])
  )
  yield* Effect.promise(() => client.registerTools(tools.map(toTool)))
})
