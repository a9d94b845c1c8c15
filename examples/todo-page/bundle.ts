import { Effect } from "effect"
import { rolldown } from "rolldown"

/** A module with all it imports in one file for a browser, as a bundler of your own would make it. */
export const bundle = (module: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const bundled = await rolldown({ input: module, cwd: import.meta.dirname, platform: "browser" })
    const { output } = await bundled.generate({ format: "esm", minify: true })
    await bundled.close()
    return output[0].code
  })
