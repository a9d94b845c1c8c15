/** `harness-load.ts PACKAGE`: loads a bridge plugin into a running harness; prints how long that took, as JSON. */
import { startHarness, stateFolder } from "./contenders.ts"

const [plugin = "effect-frontend-tools"] = process.argv.slice(2)
const ctx = await startHarness()

const start = performance.now()
await ctx.plugin(await import(plugin), { port: 0, stateDir: stateFolder() })
console.log(JSON.stringify({ millis: performance.now() - start }))
process.exit(0)
