/**
 * A program that changes a roster without end, and says of each change that it is
 * done. It is made to be killed: its arguments are the state folder and the number of
 * the change it begins with.
 */
import { writeSync } from "node:fs"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import { BridgeConfig } from "../../../src/layers/bridge/BridgeConfig.ts"
import { Roster } from "../../../src/layers/bridge/Roster.ts"
import { changeOf } from "./rosterChanges.ts"

// At once, and not when a stream finds the time.
const say = (line: string | number) => writeSync(1, `${line}\n`)

const [stateDir, first] = process.argv.slice(2)

const main = Effect.gen(function* () {
  const roster = yield* Roster
  for (let number = Number(first); ; number++) {
    const { key, namespace } = changeOf(number)
    yield* key === undefined ? roster.revoke(namespace) : roster.register(namespace, key)
    say(number)
  }
})

const layer = Roster.layer.pipe(
  Layer.provide(BridgeConfig.layer({ stateDir })),
  Layer.provide(Layer.merge(NodeFileSystem.layer, NodePath.layer))
)

// Whatever the modes of the files will be, they do not owe it to the user's mask.
process.umask(0)
say("started")
Effect.runFork(Effect.provide(main, layer))
