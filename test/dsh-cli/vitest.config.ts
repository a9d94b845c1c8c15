import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/dsh-cli/*.test.ts"],
    globalSetup: "test/dsh-cli/install.ts",
    // Each test installs a profile and boots the harness in processes of their own.
    testTimeout: 120_000,
    reporters: ["verbose", "./test/support/summaryReporter.ts"]
  }
})
