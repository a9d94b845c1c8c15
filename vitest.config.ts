import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Real sockets, browsers and child processes on a busy machine; no test waits for time to pass.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ["default", "./test/support/summaryReporter.ts"]
  }
})
