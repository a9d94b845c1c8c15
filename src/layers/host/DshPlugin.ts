/**
 * The bridge as a plugin of DeepSeek Harness (bridge protocol, part i): its lifecycle
 * as a Scope, `ctx.tools` as a ToolHost, `exec.signal` as interruption.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Cause, Effect, Exit, Layer, Logger, References, Schema, Scope } from "effect"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { isJsonObject } from "../../domain/bridge/RemoteTool.ts"
import * as Bridge from "../bridge/Bridge.ts"
import { BridgeConfig, BridgeOptions } from "../bridge/BridgeConfig.ts"
import type { DshContext } from "./DshApi.ts"
import * as DshHost from "./DshHost.ts"

/** What the harness calls the plugin. */
export const name = "frontend-tools-bridge"

/** The services of the harness that the plugin needs. */
export const inject = ["tools"]

const standard = Schema.toStandardSchemaV1(BridgeOptions)["~standard"]

/** A row of the configuration spells an absent field as it likes. */
const withoutNulls = (value: unknown): unknown => {
  if (value === null || value === undefined) return {}
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null))
}

/**
 * The row's configuration, in the form that the harness's loader reads. It is
 * `BridgeOptions`, so what was validated is what the Layer receives.
 */
export const Config: StandardSchemaV1<unknown, BridgeOptions> = {
  "~standard": { ...standard, validate: (value: unknown) => standard.validate(withoutNulls(value)) }
}

// The harness prints a model's answer on standard output.
const logging = Layer.mergeAll(
  Layer.succeed(Logger.LogToStderr, true),
  Layer.succeed(References.MinimumLogLevel, "Warn")
)

/**
 * Starts the bridge in a context of the harness. Resolves once the port is bound, with
 * the disposer that the harness awaits; rejects with the cause, and leaves nothing
 * behind, when the port is taken, the roster is malformed or a static client collides.
 */
export const apply = async (ctx: DshContext, config: BridgeOptions): Promise<() => Promise<void>> => {
  const scope = Scope.makeUnsafe()
  const bridge = Bridge.layer.pipe(
    Layer.provide(DshHost.layer(ctx)),
    Layer.provide(Layer.succeed(BridgeConfig, config)),
    Layer.provide([NodeFileSystem.layer, NodePath.layer]),
    Layer.provide(logging)
  )
  const started = await Effect.runPromiseExit(Layer.buildWithScope(bridge, scope))
  const dispose = () => Effect.runPromise(Scope.close(scope, Exit.void))
  if (Exit.isSuccess(started)) return dispose
  await dispose()
  const failure = Cause.squash(started.cause)
  throw failure instanceof Error ? new Error(failure.message) : failure
}
