import { Effect } from "effect"
import { Command, Flag } from "effect/cli"

/** `backend`: the backend half of the outbound contract on loopback, with a scripted model. */
export const backendCommand = Command.make(
  "backend",
  {
    port: Flag.Int("port").pipe(Flag.withDescription("Port to listen on; 0 takes a free one"), Flag.withDefault(0)),
    db: Flag.String("db").pipe(
      Flag.withDescription("SQLite file that keeps conversations; without it they are gone when the server stops"),
      Flag.optional
    ),
    script: Flag.String("script").pipe(
      Flag.withDescription("JSON file with the model's answers and, optionally, a tool catalog"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* (options) {
    // Half of what the whole command line loads belongs to this command alone.
    const { serveBackend } = yield* Effect.promise(() => import("./serveBackend.ts"))
    return yield* serveBackend(options)
  })
).pipe(
  Command.withDescription("Serve the backend half of the outbound contract on loopback, with a scripted model"),
  Command.withExamples([
    { command: "effect-frontend-tools backend --db chats.db", description: "A free port, conversations kept in a file" }
  ])
)
