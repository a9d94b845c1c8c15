import { createServer } from "node:net"
import { Effect } from "effect"

/** A loopback port that was free a moment ago: for a program that has to be told one before it starts. */
export const freePort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})
