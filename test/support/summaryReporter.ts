import type { Reporter, TestModule } from "vitest/node"

/** Closes a run with the plain line `N passed, N failed`, which is what a CI reads. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>) {
    let passed = 0
    let skipped = 0
    let failed = unhandledErrors.length
    for (const module of modules) {
      // A file that does not even load runs no test: it still is a failure.
      failed += module.errors().length
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === "passed") passed++
        else if (state === "failed") failed++
        else skipped++
      }
    }
    // The default reporter prints in the same hook; the line has to come after it.
    setImmediate(() => console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`))
  }
}
