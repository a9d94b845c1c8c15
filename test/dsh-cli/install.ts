/**
 * Puts the released `dsh` command line (some 490 MB, about a minute) into a cache folder
 * of its own, once for each version of its manifest, and beside it the tarball that a
 * user of ours would install.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

export const CACHE = join(root, ".cache", "dsh-cli")
export const BIN = join(CACHE, "node_modules", ".bin")

export const setup = () => {
  const manifest = readFileSync(new URL("./harness/package.json", import.meta.url), "utf8")
  const installed = join(CACHE, "installed.json")
  mkdirSync(CACHE, { recursive: true })
  if (!existsSync(installed) || readFileSync(installed, "utf8") !== manifest) {
    console.log("installing the dsh command line, about a minute ...")
    writeFileSync(join(CACHE, "package.json"), manifest)
    // Its peers contradict each other: resolving them does not end.
    execFileSync("npm", ["install", "--legacy-peer-deps", "--no-audit", "--no-fund"], { cwd: CACHE, stdio: "inherit" })
    writeFileSync(installed, manifest)
  }
  execFileSync("npm", ["pack", "--silent", "--pack-destination", CACHE], { cwd: root, stdio: "ignore" })
}

/** The packed tarball of this package. */
export const tarball = (): string => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  return join(CACHE, `effect-frontend-tools-${version}.tgz`)
}
