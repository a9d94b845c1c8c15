/** What a chat keeps: one folder per conversation in the state folder, and who the guest is. */
import { Effect, FileSystem, Path, Redacted } from "effect"
import { stateFolder } from "../layers/bridge/RosterFile.ts"
import { ChatExit } from "./chatExit.ts"

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700

/** The folder of all chats. */
const chatsFolder = Effect.fnUntraced(function* (stateDir: string | undefined) {
  const path = yield* Path.Path
  return path.join(yield* stateFolder(stateDir), "frontend-tools-chat")
})

/**
 * The folder of one conversation's journal, held by this process alone: two processes
 * that go on with one conversation would both run its calls. The system lets go of it
 * however the process ends.
 */
export const conversationFolder = Effect.fnUntraced(function* (stateDir: string | undefined, conversation: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.join(yield* chatsFolder(stateDir), `conversation-${encodeURIComponent(conversation)}`)
  yield* fs.makeDirectory(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
  yield* hold(path.join(folder, "lock"), conversation)
  const journal = path.join(folder, "journal")
  // Nothing is owed: the next chat needs nothing of this one.
  const tidy = Effect.gen(function* () {
    const owed = (yield* fs.readDirectory(journal)).some((name) => !name.startsWith(RUN_RECORD))
    if (!owed) yield* fs.remove(folder, { recursive: true })
  })
  yield* Effect.addFinalizer(() => Effect.ignore(tidy))
  return journal
})

/** What a run was sent with: of use only to calls that are still open. */
const RUN_RECORD = encodeURIComponent("aidream/runs/")

/** Takes the lock of a database file, which the system releases with the process. */
const hold = Effect.fnUntraced(function* (file: string, conversation: string) {
  const { DatabaseSync } = yield* Effect.promise(() => import("node:sqlite"))
  yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        const lock = new DatabaseSync(file, { timeout: 0 })
        // Nothing is ever written, so no second file appears beside it.
        lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        return lock
      },
      catch: () => new ChatExit({ code: 1, message: `conversation ${conversation} is open in another process` })
    }),
    (lock) => Effect.sync(() => lock.close())
  )
})

/** Who a guest is: a random text, the same for every chat of this state folder. */
export const guestFingerprint = Effect.fnUntraced(function* (stateDir: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* chatsFolder(stateDir)
  const file = path.join(folder, "guest")
  yield* fs.makeDirectory(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
  const kept = fs.readFileString(file).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed("")),
    Effect.map((text) => text.trim())
  )
  const known = yield* kept
  if (known !== "") return Redacted.make(known)
  const minted = globalThis.crypto.randomUUID()
  yield* fs.writeFileString(file, `${minted}\n`, { flag: "wx", mode: OWNER_ONLY_FILE }).pipe(
    // Another chat was first: its text counts.
    Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void)
  )
  return Redacted.make((yield* kept) || minted)
})
