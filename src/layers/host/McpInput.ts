/**
 * What an MCP client writes to us, made safe for the server that reads it.
 */
import { Effect, Result, Stdio, Stream } from "effect"

const isMessage = (line: string): boolean => {
  const value = Result.try((): unknown => JSON.parse(line))
  return Result.isSuccess(value) && typeof value.success === "object" && value.success !== null
}

const warnOfNoise = Effect.logWarning("ignored a line on standard input that is no JSON-RPC message")

/**
 * The same `Stdio`, but with only those lines of its input that can be JSON-RPC
 * messages: one line of noise would cost the server every message that arrives in
 * the same piece. Runs `onEnd` when the client has closed the input.
 */
export const messagesOnly = (stdio: Stdio.Stdio, onEnd: Effect.Effect<unknown>): Stdio.Stdio =>
  Stdio.make({
    ...stdio,
    stdin: stdio.stdin.pipe(
      Stream.catch((error) => Stream.fromEffectDrain(Effect.logWarning("standard input failed", error))),
      Stream.decodeText(),
      Stream.splitLines,
      Stream.filter((line) => line.trim() !== ""),
      Stream.filterEffect((line) => (isMessage(line) ? Effect.succeed(true) : Effect.as(warnOfNoise, false))),
      Stream.map((line) => `${line}\n`),
      Stream.encodeText,
      Stream.onEnd(onEnd)
    )
  })
