import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, FileSystem, Layer, Option, Path } from "effect"
import { TestClock } from "effect/testing"
import { BridgeConfig, type BridgeOptionsInput, Namespace, Roster } from "../../../src/index.ts"
import { ClientKey, generateClientKey } from "../../../src/protocol.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const FILE = "frontend-tools-clients.json"
const shop = Namespace.make("shop")
const key = (digit: string) => ClientKey.make(digit.repeat(64))

const open = (stateDir: string, options: BridgeOptionsInput = {}) =>
  Layer.build(Layer.fresh(Roster.layer).pipe(Layer.provide(BridgeConfig.layer({ stateDir, ...options })))).pipe(
    Effect.map((context) => Roster.of(Effect.runSync(Effect.provideContext(Roster, context)))),
    Effect.provide(NodeServices.layer)
  )

const inFolder = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(folder, FILE)
  return {
    folder,
    file,
    write: (text: string) => fs.writeFileString(file, text),
    read: Effect.map(fs.readFileString(file), (text): unknown => JSON.parse(text)),
    mode: Effect.map(fs.stat(file), ({ mode }) => mode & 0o777),
    fs
  }
}).pipe(Effect.provide(NodeServices.layer))

const loadError = (text: string, options: BridgeOptionsInput = {}) =>
  Effect.gen(function* () {
    const { folder, write } = yield* inFolder
    yield* write(text)
    const exit = yield* Effect.exit(open(folder, options))
    const error = Exit.findErrorOption(exit)
    return Option.isSome(error) ? error.value.message : assert.fail("was loaded")
  })

const entry = (namespace: string, value: string = key("a")) => JSON.stringify([{ namespace, key: value }])

describe("Roster", () => {
  it.effect("admits who is registered, knows nobody else, and keeps that over a restart", () =>
    Effect.gen(function* () {
      const { file, folder, fs, mode } = yield* inFolder
      const roster = yield* open(folder)
      assert.deepStrictEqual(yield* roster.register(shop, key("a")), { displaced: false, invalidated: [] })
      assert.strictEqual(yield* mode, 0o600)
      const again = yield* open(folder)
      for (const opened of [roster, again]) {
        assert.deepStrictEqual(yield* opened.authenticate(key("a")), Option.some(shop))
        assert.deepStrictEqual(yield* opened.authenticate(key("b")), Option.none())
        assert.deepStrictEqual(yield* opened.clients, [{ namespace: shop, isStatic: false }])
      }
      assert.strictEqual(
        yield* fs.readFileString(file),
        `[\n  {\n    "namespace": "shop",\n    "key": "${key("a")}"\n  }\n]\n`
      )
      assert.deepStrictEqual(yield* fs.readDirectory(folder), [FILE])
    })
  )

  it.effect("says what a change displaced", () =>
    Effect.gen(function* () {
      const { folder } = yield* inFolder
      const roster = yield* open(folder)
      yield* roster.register(shop, key("a"))
      assert.deepStrictEqual(yield* roster.register(shop, key("a")), { displaced: false, invalidated: [] })
      assert.deepStrictEqual(yield* roster.register(shop, key("b")), { displaced: true, invalidated: [shop] })
      assert.deepStrictEqual(yield* roster.authenticate(key("a")), Option.none())
      assert.deepStrictEqual(yield* roster.revoke(shop), { displaced: true, invalidated: [shop] })
      assert.deepStrictEqual(yield* roster.revoke(shop), { displaced: false, invalidated: [] })
      assert.deepStrictEqual(yield* roster.authenticate(key("b")), Option.none())
    })
  )

  it.effect("writes nothing when nothing changes", () =>
    Effect.gen(function* () {
      const { file, folder, fs } = yield* inFolder
      const roster = yield* open(folder)
      yield* roster.register(shop, key("a"))
      const version = Effect.map(fs.stat(file), ({ ino, mtime }) => [ino, mtime])
      const before = yield* version
      yield* roster.register(shop, key("a"))
      yield* roster.revoke(Namespace.make("nobody"))
      assert.deepStrictEqual(yield* version, before)
    })
  )

  it.effect("refuses what two clients cannot share", () =>
    Effect.gen(function* () {
      const { folder } = yield* inFolder
      const roster = yield* open(folder, { staticClients: [{ namespace: "fixed", key: "any text" }] })
      yield* roster.register(shop, key("a"))
      const refusal = (namespace: string, value: ClientKey) =>
        Effect.map(Effect.flip(roster.register(Namespace.make(namespace), value)), ({ message }) => message)
      assert.strictEqual(
        yield* refusal("other", key("a")),
        "key is already registered for another namespace; one credential identifies one client"
      )
      assert.strictEqual(
        yield* refusal("fixed", key("c")),
        'namespace "fixed" is statically configured in cordis.yml; edit the configuration instead of registering'
      )
      assert.include(yield* refusal("shop__eu", key("c")), 'namespace "shop__eu" collides with "shop"')
      assert.include(yield* refusal("fixed__x", key("c")), 'collides with "fixed"')
      assert.strictEqual(
        (yield* Effect.flip(roster.revoke(Namespace.make("fixed")))).message,
        'namespace "fixed" is statically configured in cordis.yml; remove it from the configuration instead of revoking'
      )
      assert.deepStrictEqual(yield* roster.authenticate("any text"), Option.some(Namespace.make("fixed")))
    })
  )

  it.effect.each([
    ["{", {}, "frontend-tools client roster is not valid JSON: SyntaxError at position 1 (line 1 column 2)"],
    [
      "[]",
      { staticClients: [{ namespace: "a b", key: "1" }] },
      'frontend-tools namespace "a b" must match ^[A-Za-z0-9_-]{1,32}$'
    ],
    ["{}", {}, "frontend-tools client roster must be a JSON array"],
    ["[1]", {}, "frontend-tools client roster entry #0 must be an object"],
    ['[{"namespace":"a"}]', {}, "frontend-tools client roster entry #0 must carry string { namespace, key }"],
    ['[{"namespace":"a","key":""}]', {}, "frontend-tools client roster entry #0 must carry string { namespace, key }"],
    [entry("a b"), {}, 'frontend-tools namespace "a b" must match ^[A-Za-z0-9_-]{1,32}$'],
    [
      `[{"namespace":"a","key":"1"},{"namespace":"a","key":"2"}]`,
      {},
      'frontend-tools client roster repeats namespace "a"'
    ],
    [
      `[{"namespace":"a","key":"1"},{"namespace":"b","key":"1"}]`,
      {},
      'frontend-tools client roster gives "b" a key already held by "a"'
    ],
    [
      `[{"namespace":"a","key":"1"},{"namespace":"a__b","key":"2"}]`,
      {},
      'frontend-tools client roster: namespace "a__b" collides with "a": their tools could get the same public name'
    ],
    [
      entry("a"),
      { staticClients: [{ namespace: "a", key: "x" }] },
      'static client namespace "a" collides with the registered roster'
    ],
    [
      entry("a"),
      { staticClients: [{ namespace: "b", key: key("a") }] },
      'static client "b" reuses a key already held by another client'
    ],
    ["[]", { staticClients: [{ namespace: "a", key: "" }] }, 'static client "a" must carry a non-empty key']
  ] as const)("does not load %s %j", ([text, options, message]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* loadError(text, options), message)
    })
  )

  it.effect("never quotes a key when the file is malformed", () =>
    Effect.gen(function* () {
      assert.notInclude(yield* loadError(`[{"namespace":"a","key":"${key("a")}"`), "aaaa")
    })
  )

  it.effect("changes nothing in memory when the file cannot be written", () =>
    Effect.gen(function* () {
      const { file, folder, fs } = yield* inFolder
      const roster = yield* open(folder)
      yield* roster.register(shop, key("a"))
      yield* fs.remove(file)
      // A folder in the file's place can be neither read nor replaced.
      yield* fs.makeDirectory(file)
      assert.strictEqual((yield* Effect.flip(roster.register(shop, key("b"))))._tag, "RosterFileError")
      assert.strictEqual((yield* Effect.flip(roster.revoke(shop)))._tag, "RosterFileError")
      assert.deepStrictEqual(yield* roster.authenticate(key("a")), Option.some(shop))
      assert.deepStrictEqual(yield* roster.authenticate(key("b")), Option.none())
      assert.deepStrictEqual(yield* fs.readDirectory(folder), [FILE])
    })
  )

  it.effect("keeps the changes of another process on the same file, and says whom they shut out", () =>
    Effect.gen(function* () {
      const { folder, read } = yield* inFolder
      const one = yield* open(folder)
      const two = yield* open(folder)
      yield* one.register(shop, key("a"))
      yield* two.register(Namespace.make("other"), key("b"))
      yield* two.revoke(shop)
      assert.deepStrictEqual(yield* one.register(Namespace.make("third"), key("c")), {
        displaced: false,
        invalidated: [shop]
      })
      assert.deepStrictEqual(yield* read, [
        { namespace: "other", key: key("b") },
        { namespace: "third", key: key("c") }
      ])
      assert.deepStrictEqual(yield* one.authenticate(key("b")), Option.some(Namespace.make("other")))
    })
  )

  it.effect("loses none of many changes made at once", () =>
    Effect.gen(function* () {
      const { folder, read } = yield* inFolder
      const roster = yield* open(folder)
      const names = Array.from({ length: 30 }, (_, i) => Namespace.make(`app${i}`))
      yield* Effect.forEach(names, (name) => roster.register(name, generateClientKey()), { concurrency: "unbounded" })
      assert.strictEqual((yield* roster.clients).length, names.length)
      const stored = yield* read
      assert.strictEqual(Array.isArray(stored) ? stored.length : 0, names.length)
    })
  )

  it.effect("keeps what other programs wrote into an entry, and the order of entries", () =>
    Effect.gen(function* () {
      const { folder, read, write } = yield* inFolder
      yield* write(`[{"namespace":"shop","key":"old","label":"Shop"},{"key":"${key("b")}","namespace":"b"}]`)
      const roster = yield* open(folder)
      yield* roster.register(shop, key("a"))
      assert.deepStrictEqual(yield* read, [
        { namespace: "shop", key: key("a"), label: "Shop" },
        { key: key("b"), namespace: "b" }
      ])
    })
  )

  it.effect("takes a file that others can read away from them", () =>
    Effect.gen(function* () {
      const { file, folder, fs, mode, write } = yield* inFolder
      yield* write("[]")
      yield* fs.chmod(file, 0o644)
      yield* open(folder)
      assert.strictEqual(yield* mode, 0o600)
    })
  )

  it.effect("removes what killed writers left, but nothing that a live one may be writing or that is not its own", () =>
    Effect.gen(function* () {
      const { folder, fs } = yield* inFolder
      const leftover = `.${FILE}.01234567-89ab-4def-8123-456789abcdef.tmp`
      const foreign = [`.${FILE}.notes.tmp`, `${leftover}.bak`, "01234567-89ab-4def-8123-456789abcdef.tmp"]
      for (const name of [leftover, ...foreign]) {
        yield* fs.writeFileString(`${folder}/${name}`, entry("a"))
        // The test's clock starts there.
        yield* fs.utimes(`${folder}/${name}`, 0, 0)
      }
      yield* TestClock.adjust("1 minute")
      yield* open(folder)
      assert.sameMembers(yield* fs.readDirectory(folder), [leftover, ...foreign])
      yield* TestClock.adjust("1 second")
      yield* open(folder)
      assert.sameMembers(yield* fs.readDirectory(folder), foreign)
    })
  )

  it.effect("finds its folder: the setting, else DSH_HOME, else ~/.dsh", () =>
    Effect.gen(function* () {
      const { folder, fs } = yield* inFolder
      const register = (env: Record<string, string>, stateDir?: string) =>
        Effect.gen(function* () {
          const roster = yield* Roster
          yield* roster.register(shop, key("a"))
        }).pipe(
          Effect.provide(
            Layer.fresh(Roster.layer).pipe(
              Layer.provide(BridgeConfig.layer({ stateDir })),
              Layer.provide(NodeServices.layer),
              Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
            )
          )
        )
      yield* register({ HOME: folder })
      yield* register({ HOME: folder, DSH_HOME: " " })
      yield* register({ HOME: folder, DSH_HOME: "~/harness" })
      yield* register({ HOME: folder, DSH_HOME: "/nowhere" }, "~/state")
      for (const home of [".dsh", "harness", "state"]) {
        assert.strictEqual((yield* fs.stat(`${folder}/${home}`)).mode & 0o777, 0o700)
        assert.deepStrictEqual(yield* fs.readDirectory(`${folder}/${home}`), [FILE])
      }
    })
  )
})
