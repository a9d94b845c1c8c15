import { Effect } from "effect"
import { rolldown } from "rolldown"

const bundle = async (module: string) => {
  const bundled = await rolldown({ input: module, cwd: import.meta.dirname, platform: "browser" })
  const { output } = await bundled.generate({ format: "esm", minify: true })
  await bundled.close()
  return output[0].code
}

let made: Promise<string> | undefined

/** The client with all it imports in one file for a browser, as a bundler of your own would make it. Made once. */
export const clientModule: Effect.Effect<string> = Effect.promise(() => {
  made ??= bundle("effect-frontend-tools/promise")
  return made
})
