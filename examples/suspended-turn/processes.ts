/** The three programs of the demonstration, as real processes that are killed the hard way. */
import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import { Data, Deferred, Effect, Schema, type Scope } from "effect"

const root = join(import.meta.dirname, "..", "..")
const cli = join(root, "dist", "cli.js")

/** A program ended that the demonstration still needed. */
export class Ended extends Data.TaggedError("Ended")<{ readonly message: string }> {}

export interface Program {
  /** The first line that the question finds something in, now or later. */
  readonly said: <A>(find: (line: string) => A | undefined) => Effect.Effect<A, Ended>
  /** SIGKILL: nothing in the program gets to know of it. */
  readonly kill: Effect.Effect<void>
  readonly exitCode: Effect.Effect<number | null>
}

/** Starts a program that ends with the scope, and passes every line it prints on. */
const start = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  onLine: (line: string) => void = () => {}
): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const waiting = new Set<() => void>()
    const exit = Deferred.makeUnsafe<number | null>()
    const wake = () => {
      for (const look of waiting) look()
    }
    const child: ChildProcess = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] })
      ),
      (running) =>
        Effect.andThen(
          Effect.sync(() => running.kill("SIGKILL")),
          Deferred.await(exit)
        )
    )
    let rest = ""
    child.stdout?.on("data", (chunk) => {
      const parts = (rest + String(chunk)).split("\n")
      rest = parts.pop() ?? ""
      for (const line of parts) {
        lines.push(line)
        onLine(line)
      }
      wake()
    })
    let complaint = ""
    child.stderr?.on("data", (chunk) => {
      complaint = String(chunk)
    })
    child.on("close", (code) => {
      Deferred.doneUnsafe(exit, Effect.succeed(code))
      wake()
    })

    const said: Program["said"] = (find) =>
      Effect.callback((resume) => {
        let next = 0
        const look = () => {
          for (; next < lines.length; next++) {
            const found = find(lines[next] ?? "")
            if (found === undefined) continue
            waiting.delete(look)
            return resume(Effect.succeed(found))
          }
          if (child.exitCode === null && child.signalCode === null) return
          waiting.delete(look)
          resume(Effect.fail(new Ended({ message: `${args.join(" ")} ended: ${complaint}` })))
        }
        waiting.add(look)
        look()
        return Effect.sync(() => waiting.delete(look))
      })

    return {
      said,
      kill: Effect.andThen(
        Effect.sync(() => child.kill("SIGKILL")),
        Effect.asVoid(Deferred.await(exit))
      ),
      exitCode: Deferred.await(exit)
    }
  })

/** The backend on a database, with the script as its model. Gives the port it has. */
export const startBackend = Effect.fnUntraced(function* (options: { readonly db: string; readonly port: number }) {
  const script = join(import.meta.dirname, "script.json")
  const program = yield* start(
    [cli, "backend", "--port", String(options.port), "--db", options.db, "--script", script],
    {}
  )
  const port = yield* program.said((line) => /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1])
  return { ...program, port: Number(port) }
})

/** The shop, whose notes say which tools ran. */
export const startShop = (options: { readonly bridge: string; readonly key: string; readonly notes: string }) =>
  start([join(import.meta.dirname, "application.ts")], {
    SHOP_BRIDGE: options.bridge,
    SHOP_KEY: options.key,
    SHOP_NOTES: options.notes
  })

/** What the story needs of a line that a chat prints with `--json`. */
const ChatEvent = Schema.Struct({
  event: Schema.String,
  url: Schema.optionalKey(Schema.String),
  port: Schema.optionalKey(Schema.Int),
  conversationId: Schema.optionalKey(Schema.String),
  delegation: Schema.optionalKey(Schema.Struct({ callId: Schema.String, toolName: Schema.String })),
  line: Schema.optionalKey(Schema.Struct({ event: Schema.String, data: Schema.optionalKey(Schema.Unknown) })),
  result: Schema.optionalKey(
    Schema.Struct({
      tool_name: Schema.String,
      output: Schema.Unknown,
      error_message: Schema.NullOr(Schema.String)
    })
  ),
  outcome: Schema.optionalKey(Schema.String),
  resumed: Schema.optionalKey(Schema.Boolean),
  suspended: Schema.optionalKey(Schema.Boolean)
})
export type ChatEvent = typeof ChatEvent.Type

const readEvent = Schema.decodeUnknownSync(Schema.fromJsonString(ChatEvent))

/** The chat, and with it the bridge. Every line is one event. */
export const startChat = Effect.fnUntraced(function* (
  options: { readonly backend: string; readonly key: string; readonly port: number; readonly stateDir: string },
  args: ReadonlyArray<string>,
  onEvent: (event: ChatEvent) => void
) {
  const flags = ["--base-url", options.backend, "--agent", "any", "--port", String(options.port), "--json"]
  const program = yield* start(
    [cli, "chat", ...flags, "--state-dir", options.stateDir, "--approve-writes", "always", ...args],
    { FRONTEND_TOOLS_STATIC_CLIENTS: `shop=${options.key}` },
    (line) => onEvent(readEvent(line))
  )
  return {
    ...program,
    /** Waits for an event, and gives its fields. */
    event: (name: string, is: (event: ChatEvent) => boolean = () => true) =>
      program.said((line) => {
        const event = readEvent(line)
        return event.event === name && is(event) ? event : undefined
      })
  }
})
