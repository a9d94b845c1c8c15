import { randomBytes } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { freePort } from "../support/freePort.ts"
import { runProgram } from "../support/program.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { BIN, tarball } from "./install.ts"

export interface ProfileOptions {
  /** Lines of the row's configuration. */
  readonly config?: ReadonlyArray<string>
  /** A plugin file that is mounted beside the row. */
  readonly beside?: string
}

const KEY = randomBytes(32).toString("hex")

/** Certificates and npm's settings are the machine's; a developer's own harness is not. */
const inherited = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || /^(DSH_|DEEPSEEK_)/.test(name) ? [] : [[name, value]]
  )
)

/** A headless profile in a home of its own, with the packed plugin added as a user adds it. */
export const headlessProfile = Effect.fnUntraced(function* ({ beside, config = [] }: ProfileOptions = {}) {
  const home = yield* temporaryFolder
  const work = join(home, "work")
  mkdirSync(work)
  const dsh = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
    runProgram(
      [join(BIN, "dsh"), ...args],
      {
        ...inherited,
        PATH: `${BIN}:${process.env.PATH}`,
        DSH_HOME: home,
        DSH_TELEMETRY_DISABLED: "1",
        ...env
      },
      work
    )
  const added = yield* dsh(["plugin", "--profile", "headless", "add", tarball()])
  if (added.code !== 0) return yield* Effect.die(new Error(`plugin add: ${added.stdout}${added.stderr}`))

  const port = yield* freePort
  const roster = join(home, "frontend-tools-clients.json")
  writeFileSync(roster, JSON.stringify([{ namespace: "shop", key: KEY }]), { mode: 0o600 })
  const patch = [
    "- id: frontend-tools-bridge",
    "  config:",
    ...[`port: ${port}`, ...config].map((line) => `    ${line}`),
    ...(beside === undefined ? [] : ["- insert:", "    - id: beside", `      name: ${beside}`])
  ]
  writeFileSync(join(home, "profiles", "headless", "cordis.patch.yml"), `${patch.join("\n")}\n`)
  return {
    port,
    key: KEY,
    roster,
    /** Runs one turn with the model behind the address. */
    ask: (modelUrl: string) =>
      dsh(["--profile", "headless", "do the task"], {
        DEEPSEEK_API_KEY: "key-of-the-test",
        DEEPSEEK_BASE_URL: modelUrl
      })
  }
})
