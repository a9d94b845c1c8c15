import { existsSync } from "node:fs"
import { mkdtemp, readFile, rename, rm } from "node:fs/promises"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import chromium from "@sparticuz/chromium"
import { Context, Effect, Layer } from "effect"
import { type Browser, type BrowserContext, type Page, chromium as playwright } from "playwright-core"

/** No sandbox, since tests may run as root, and nothing that talks to the world or loosens the web's security. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
]

/**
 * The packaged browser, unpacked once for this user. The package itself unpacks into the
 * temporary folder in place: a second worker would start half a browser, and another
 * user one that is not theirs.
 */
const unpacked = async () => {
  const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8")
  const version = JSON.parse(manifest).devDependencies["@sparticuz/chromium"]
  const folder = join(tmpdir(), `effect-frontend-tools-chromium-${version}-${userInfo().uid}`)
  const program = join(folder, "chromium")
  if (existsSync(program)) return program
  const fresh = await mkdtemp(`${folder}-`)
  const { TMPDIR } = process.env
  process.env.TMPDIR = fresh
  try {
    await chromium.executablePath()
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
  // Whoever comes second takes the first one's.
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }))
  return program
}

/** The packaged browser is for Linux on x64; elsewhere it is the machine's own. */
const program = async () => {
  const named = process.env.CHROME_PATH
  if (named !== undefined) return { executablePath: named }
  if (process.platform === "linux" && process.arch === "x64") return { executablePath: await unpacked() }
  return { channel: "chrome" }
}

/** A real headless Chromium. */
export class Chromium extends Context.Service<Chromium, Browser>()("test/Chromium") {
  /** With what a test needs beyond a plain browser, such as features behind a flag. */
  static readonly layer = (...args: ReadonlyArray<string>) =>
    Layer.effect(
      Chromium,
      Effect.acquireRelease(
        Effect.promise(async () =>
          playwright.launch({ ...(await program()), args: [...ARGS, ...args], headless: true })
        ),
        (browser) => Effect.promise(() => browser.close())
      )
    )
}

/** A profile of its own: its pages share storage, and no other's. */
export const openProfile = Effect.acquireRelease(
  Effect.flatMap(Chromium, (browser) => Effect.promise(() => browser.newContext())),
  (context) => Effect.promise(() => context.close())
)

/** A page at this address, in this profile or one of its own. */
export const openPage = Effect.fnUntraced(function* (url: string, profile?: BrowserContext) {
  const context = profile ?? (yield* openProfile)
  const page = yield* Effect.promise(() => context.newPage())
  yield* Effect.promise(() => page.goto(url))
  return page
})

/** Waits for an element that has this text. */
export const sees = (page: Page, selector: string, text: string | RegExp) =>
  Effect.promise(() => page.locator(selector).filter({ hasText: text }).first().waitFor())
