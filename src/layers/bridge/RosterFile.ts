/**
 * The roster's file: `frontend-tools-clients.json` in the state folder (bridge
 * protocol, part c).
 */
import {
  Clock,
  Config,
  Duration,
  Effect,
  FileSystem,
  Option,
  Path,
  type PlatformError,
  Redacted,
  Result,
  Schema
} from "effect"
import { isJsonObject, type JsonObject } from "../../domain/bridge/RemoteTool.ts"
import { NAMESPACE_PATTERN, Namespace } from "../../domain/bridge/ToolName.ts"

const FILE_NAME = "frontend-tools-clients.json"
const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700
const ATTEMPTS = 5

/** A file that is to take the roster's place. */
const temporaryName = () => `.${FILE_NAME}.${globalThis.crypto.randomUUID()}.tmp`
const isTemporaryName = (name: string) =>
  name.startsWith(`.${FILE_NAME}.`) &&
  /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/.test(name.slice(FILE_NAME.length + 2))

/** A writer needs milliseconds: what has not been touched for this long has none any more. */
const ABANDONED_AFTER = Duration.minutes(1)

/** The file's content is not a roster, or a static client collides with it. */
export class RosterMalformed extends Schema.TaggedError<RosterMalformed>()("RosterMalformed", {
  message: Schema.String
}) {}

/** The file could not be read or written. The message is the system's and holds no key. */
export class RosterFileError extends Schema.TaggedError<RosterFileError>()("RosterFileError", {
  message: Schema.String
}) {}

/** One client of the file. */
export interface RosterRecord {
  readonly namespace: Namespace
  readonly key: Redacted.Redacted
  /** The entry as it was read: fields of other programs survive a rewrite. */
  readonly source?: JsonObject | undefined
}

const decodeNamespaceResult = Schema.decodeUnknownResult(Namespace)

/** A namespace of the file or of the configuration. */
export const decodeNamespace = (namespace: string): Effect.Effect<Namespace, RosterMalformed> =>
  Effect.fromResult(
    Result.mapError(
      decodeNamespaceResult(namespace),
      () =>
        new RosterMalformed({
          message: `frontend-tools namespace ${JSON.stringify(namespace)} must match ${NAMESPACE_PATTERN.source}`
        })
    )
  )

const decode = Effect.fnUntraced(function* (text: string) {
  const malformed = (message: string) => new RosterMalformed({ message: `frontend-tools client roster ${message}` })
  const parsed = yield* Effect.try({
    try: (): unknown => JSON.parse(text),
    // The engine's message may quote the text, and with it a key: only the place is passed on.
    catch: (error) =>
      malformed(`is not valid JSON: SyntaxError${/ at position \d+[^"]*$/.exec(String(error))?.[0] ?? ""}`)
  })
  if (!Array.isArray(parsed)) return yield* malformed("must be a JSON array")
  const records: Array<RosterRecord> = []
  for (const [index, entry] of parsed.entries()) {
    if (!isJsonObject(entry)) return yield* malformed(`entry #${index} must be an object`)
    const { namespace, key } = entry
    if (typeof namespace !== "string" || typeof key !== "string" || key === "") {
      return yield* malformed(`entry #${index} must carry string { namespace, key }`)
    }
    records.push({ namespace: yield* decodeNamespace(namespace), key: Redacted.make(key), source: entry })
  }
  return records
})

const encode = (records: ReadonlyArray<RosterRecord>): string => {
  const entries = records.map(({ namespace, key, source }) => ({ ...source, namespace, key: Redacted.value(key) }))
  return `${JSON.stringify(entries, undefined, 2)}\n`
}

/** The records with this one in them: in its old place, or at the end. */
export const withRecord = (records: ReadonlyArray<RosterRecord>, record: RosterRecord): ReadonlyArray<RosterRecord> => {
  const known = records.some(({ namespace }) => namespace === record.namespace)
  return known
    ? records.map((old) => (old.namespace === record.namespace ? { ...record, source: old.source } : old))
    : [...records, record]
}

const failWith = (error: PlatformError.PlatformError) => new RosterFileError({ message: error.message })

/** The state folder: the setting, else `$DSH_HOME`, else `~/.dsh`; `~` is the home folder. */
const stateFolder = Effect.fnUntraced(
  function* (setting: string | undefined) {
    const path = yield* Path.Path
    const fromEnv = yield* Config.String("DSH_HOME").pipe(Config.option)
    const home = yield* Config.String("HOME").pipe(
      Config.orElse(() => Config.String("USERPROFILE")),
      Config.option
    )
    const chosen =
      setting ?? Option.getOrUndefined(Option.filter(fromEnv, (folder) => folder.trim() !== "")) ?? "~/.dsh"
    if (!/^~(?:$|[/\\])/.test(chosen)) return path.resolve(chosen)
    if (Option.isNone(home)) {
      return yield* new RosterFileError({ message: `no home folder is known for the state folder "${chosen}"` })
    }
    return path.resolve(path.join(home.value, chosen.slice(1)))
  },
  Effect.catchTag("ConfigError", (error) => Effect.fail(new RosterFileError({ message: error.message })))
)

/** Removes what a process left that was killed while it wrote: there are keys in it. */
const removeAbandoned = Effect.fnUntraced(
  function* (folder: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(ABANDONED_AFTER)
    const remove = Effect.fnUntraced(function* (file: string) {
      const { mtime } = yield* fs.stat(file)
      if (Option.exists(mtime, (time) => time.getTime() < before)) yield* fs.remove(file)
    })
    const names = (yield* fs.readDirectory(folder)).filter(isTemporaryName)
    yield* Effect.forEach(names, (name) => Effect.ignore(remove(path.join(folder, name))), { discard: true })
  },
  (removing) => Effect.ignore(removing)
)

/** What the file held, and which file it was. */
interface Reading {
  readonly records: ReadonlyArray<RosterRecord>
  /** Every write makes a new file, so this tells whether another process wrote. */
  readonly version: string | undefined
}

/** Opens the roster's file in the state folder. Neither need exist. */
export const make = Effect.fnUntraced(function* (stateDir: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* stateFolder(stateDir)
  const file = path.join(folder, FILE_NAME)

  const versionNow = fs.stat(file).pipe(
    // The inode alone would not do: the next file may get that of the one it replaced.
    Effect.map(({ ino, mtime, size }): string | undefined => [ino, mtime, size].map(String).join()),
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed(undefined))
  )

  const read: Effect.Effect<Reading, RosterMalformed | RosterFileError> = Effect.gen(function* () {
    const version = yield* versionNow
    const text = yield* fs
      .readFileString(file)
      .pipe(Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed("[]")))
    return { records: yield* decode(text), version }
  }).pipe(Effect.catchTag("PlatformError", (error) => Effect.fail(failWith(error))))

  // Everything is done to a file of another name, which then takes the place of the
  // old one in one step: a reader sees the one or the other, never a part.
  const write = Effect.fnUntraced(function* (
    text: string,
    stillCurrent: Effect.Effect<boolean, PlatformError.PlatformError>
  ) {
    yield* fs.makeDirectory(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
    const temporary = path.join(folder, temporaryName())
    const written = yield* Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* fs.open(temporary, { flag: "wx", mode: OWNER_ONLY_FILE })
          yield* handle.writeAll(new TextEncoder().encode(text))
          yield* handle.sync
        })
      )
      if (!(yield* stillCurrent)) return false
      yield* fs.rename(temporary, file)
      return true
    }).pipe(
      Effect.onExit((exit) =>
        exit._tag === "Success" && exit.value ? Effect.void : Effect.ignore(fs.remove(temporary))
      )
    )
    // Makes the rename itself last; not every platform can sync a folder.
    if (written) {
      yield* Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(folder, { flag: "r" }), (handle) => handle.sync)))
    }
    return written
  }, Effect.uninterruptible)

  /**
   * Replaces the records by what `edit` makes of the present ones, and returns
   * those. Nothing is written when `edit` returns what it was given. Another
   * process's write in between is noticed, and the edit made anew on top of it.
   */
  const update = <E>(
    edit: (records: ReadonlyArray<RosterRecord>) => Effect.Effect<ReadonlyArray<RosterRecord>, E>
  ): Effect.Effect<ReadonlyArray<RosterRecord>, E | RosterMalformed | RosterFileError> =>
    Effect.gen(function* () {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const { records, version } = yield* read
        const next = yield* edit(records)
        const changed = next.length !== records.length || next.some((record, index) => record !== records[index])
        if (!changed) return records
        const stillCurrent = Effect.map(versionNow, (now) => now === version)
        const written = yield* Effect.mapError(write(encode(next), stillCurrent), failWith)
        if (written) return next
      }
      return yield* new RosterFileError({ message: `${file} is being changed by other processes all the time` })
    })

  // A file of an older program, or one a person copied, may be open to others.
  yield* Effect.ignore(
    Effect.flatMap(fs.stat(file), (info) => ((info.mode & 0o077) === 0 ? Effect.void : fs.chmod(file, OWNER_ONLY_FILE)))
  )

  yield* removeAbandoned(folder)

  return { read, update } as const
})
