import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { BridgeConfig, type BridgeOptionsInput } from "../../../src/index.ts"

const read = (options?: BridgeOptionsInput) => Effect.provide(BridgeConfig, BridgeConfig.layer(options))

const fromEnv = (env: Record<string, string>) =>
  Effect.provide(
    BridgeConfig,
    BridgeConfig.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
  )

describe("BridgeConfig", () => {
  it.effect("has the defaults of the protocol", () =>
    Effect.gen(function* () {
      for (const config of [yield* read(), yield* fromEnv({})]) {
        assert.deepInclude(config, {
          port: 31870,
          callTimeoutMs: 30_000,
          maxTools: 200,
          staticClients: [],
          checkHost: true,
          maxFrameBytes: 16 * 1024 * 1024,
          maxHelloBytes: 16 * 1024,
          handshakeTimeoutMs: 5000,
          maxPendingHandshakes: 64,
          pingIntervalMs: 15_000
        })
        assert.isUndefined(config.stateDir)
        assert.isUndefined(config.allowedOrigins)
      }
    })
  )

  it.effect.each([
    [{ port: 65_536 }, "port must be an integer from 0 to 65535"],
    [{ port: 1.5 }, "port must be an integer from 0 to 65535"],
    [{ callTimeoutMs: 0 }, "callTimeoutMs must be an integer from 1 to 2147483647"],
    [{ callTimeoutMs: 3_000_000_000 }, "callTimeoutMs must be an integer from 1 to 2147483647"],
    [{ stateDir: "" }, "stateDir must not be empty"]
  ] as const)("refuses %j", ([options, message]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(read(options))
      assert.strictEqual(error.message, message)
    })
  )

  it.effect("takes every setting from the environment", () =>
    Effect.gen(function* () {
      const config = yield* fromEnv({
        FRONTEND_TOOLS_PORT: "0",
        FRONTEND_TOOLS_CALL_TIMEOUT_MS: "1000",
        FRONTEND_TOOLS_MAX_TOOLS: "5",
        FRONTEND_TOOLS_STATE_DIR: "/state",
        FRONTEND_TOOLS_MAX_FRAME_BYTES: "2048",
        FRONTEND_TOOLS_HANDSHAKE_TIMEOUT_MS: "10",
        FRONTEND_TOOLS_ALLOWED_ORIGINS: "https://a.example, https://b.example",
        FRONTEND_TOOLS_STATIC_CLIENTS: "shop=k1,todo=k=2"
      })
      assert.deepInclude(config, {
        port: 0,
        callTimeoutMs: 1000,
        maxTools: 5,
        stateDir: "/state",
        maxFrameBytes: 2048,
        handshakeTimeoutMs: 10,
        allowedOrigins: ["https://a.example", "https://b.example"]
      })
      assert.deepStrictEqual(
        config.staticClients.map(({ key, namespace }) => [namespace, Redacted.value(key)]),
        [
          ["shop", "k1"],
          ["todo", "k=2"]
        ]
      )
      assert.notInclude(JSON.stringify(config), "k1")
    })
  )
})
