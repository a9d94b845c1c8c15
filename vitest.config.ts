import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // It installs a command line of half a gigabyte: `npm run test:dsh-cli`.
    exclude: ["test/dsh-cli/**"],
    // Real sockets, browsers and child processes on a busy machine; no test waits for time to pass.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ["default", "./test/support/summaryReporter.ts"]
  }
})
