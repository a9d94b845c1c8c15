import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { WebSocketServer } from "ws"
import { NodeWebSocket } from "../../../src/node.ts"

const serve = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" })
    await new Promise((resolve) => server.once("listening", resolve))
    const address = server.address()
    return { server, url: `ws://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}` }
  }),
  ({ server }) =>
    Effect.promise(async () => {
      for (const client of server.clients) client.terminate()
      await new Promise((resolve) => server.close(resolve))
    })
)

describe("NodeWebSocket", () => {
  it.live("writes what is sent in one turn at once, in order, and holds nothing back after it", () =>
    Effect.gen(function* () {
      const { server, url } = yield* serve
      const received: Array<string> = []
      const all = Promise.withResolvers<void>()
      server.on("connection", (socket) =>
        socket.on("message", (data) => {
          received.push(String(data))
          if (received.length === 4) all.resolve()
        })
      )
      const client = new NodeWebSocket(url)
      const upgraded = new Promise<Socket>((resolve) => client.once("upgrade", ({ socket }) => resolve(socket)))
      yield* Effect.promise(() => new Promise((resolve) => client.once("open", resolve)))
      const line = yield* Effect.promise(() => upgraded)
      const before = line.bytesWritten - line.writableLength
      for (const text of ["a", "b", "c"]) client.send(text)
      assert.strictEqual(line.writableCorked, 1)
      assert.strictEqual(line.bytesWritten - line.writableLength, before)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(line.writableCorked, 0)
      client.send("d")
      yield* Effect.promise(() => all.promise)
      assert.deepStrictEqual(received, ["a", "b", "c", "d"])
      client.close()
      // A frame after the close is no error.
      client.send("late")
    })
  )
})
