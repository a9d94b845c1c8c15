/** The bridge for a program that does not run on Effect: promises in, promises out. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import {
  Cause,
  Context,
  Effect,
  Exit,
  Layer,
  Logger,
  type LogLevel,
  ManagedRuntime,
  References,
  Result,
  Schema,
  Stream
} from "effect"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import type { JsonObject } from "../../domain/bridge/RemoteTool.ts"
import * as Bridge from "../bridge/Bridge.ts"
import { BridgeConfig, type BridgeOptionsInput } from "../bridge/BridgeConfig.ts"
import type { BridgeEvent } from "../bridge/BridgeEvent.ts"
import { BridgeServer, type SessionInfo } from "../bridge/BridgeServer.ts"
import * as MemoryRoster from "../bridge/MemoryRoster.ts"
import { WebSocketListener } from "../bridge/WebSocketListener.ts"
import { Approval, type ApprovalRequest } from "./Approval.ts"
import { type CallOutcome, FailureReason } from "./CallOutcome.ts"
import { runTool, toolGone } from "./HostCall.ts"
import { makeHostCatalog } from "./HostCatalog.ts"
import { jsonSchemaProfile } from "./SchemaProfile.ts"
import { ToolHost } from "./ToolHost.ts"
import { granted, type Write, type WriteDecision } from "./WriteDecision.ts"
import { askService, refuseWrites } from "./WritePolicy.ts"

/** The settings of a bridge, and what the program decides itself. */
export interface CreateBridgeOptions extends BridgeOptionsInput {
  /**
   * Decides on each call of a tool that writes; `request.question` is what to show a
   * person. The signal aborts when the caller gives up or the tool goes. Without this,
   * writes are refused. A rejection counts as a no.
   */
  readonly approve?: ((request: ApprovalRequest, signal: AbortSignal) => boolean | Promise<boolean>) | undefined
  /** Where registered applications are kept: in the file of `stateDir` (default), or nowhere. */
  readonly roster?: "file" | "memory" | undefined
  /** What is logged to standard error. Defaults to `Warn`. */
  readonly logLevel?: LogLevel.LogLevel | undefined
}

/** A tool as it is listed. */
export interface BridgeTool {
  /** What it is called by. */
  readonly name: string
  /** `namespace.raw`, for people. */
  readonly label: string
  readonly namespace: string
  readonly description: string
  /** Whether it only reads, or writes and is asked about. */
  readonly access: "read" | "write"
  /** JSON Schema of the arguments. */
  readonly parametersSchema: JsonObject
  /** JSON Schema of the result, where the application says it. */
  readonly outputSchema?: JsonObject | undefined
}

/** A call has no result. `reason` says why in one word, `message` is for the model. */
export class ToolCallFailed extends Schema.TaggedError<ToolCallFailed>()("ToolCallFailed", {
  reason: FailureReason,
  message: Schema.String
}) {}

/** A running bridge. */
export interface PromiseBridge extends AsyncDisposable {
  /** What applications connect to. */
  readonly url: string
  readonly port: number
  /** Every tool there is now, sorted by name, those of the bridge itself among them. */
  readonly tools: () => ReadonlyArray<BridgeTool>
  /**
   * Calls a tool. Rejects with `ToolCallFailed`, or with the signal's reason once it is
   * aborted, which the application's answer can no longer change.
   */
  readonly call: (name: string, args?: unknown, options?: { readonly signal?: AbortSignal }) => Promise<unknown>
  /** Admits an application; its key is 64 lower-case hex characters. Rejects with `ToolCallFailed`. */
  readonly register: (namespace: string, key: string) => Promise<void>
  /** Withdraws an application's access and ends its session. Rejects with `ToolCallFailed`. */
  readonly revoke: (namespace: string) => Promise<void>
  /** Who is connected, sorted by namespace. */
  readonly sessions: () => Promise<ReadonlyArray<SessionInfo>>
  /** What happens from the first `next` on, until the bridge is closed. */
  readonly events: () => AsyncIterable<BridgeEvent>
  /** Ends every session, then frees the port. The second time it waits for the first. */
  readonly close: () => Promise<void>
}

interface Calls {
  readonly tools: () => ReadonlyArray<BridgeTool>
  readonly call: (
    name: string,
    args: unknown,
    decide: (write: Write) => Effect.Effect<WriteDecision>
  ) => Effect.Effect<CallOutcome>
}

/** The host of this bridge, for this file only. */
class ProgramHost extends Context.Service<ProgramHost, Calls>()(
  "effect-frontend-tools/layers/host/PromiseBridge/ProgramHost"
) {
  static readonly layer: Layer.Layer<ProgramHost | ToolHost> = Layer.effectContext(
    Effect.gen(function* () {
      const profile = jsonSchemaProfile
      const catalog = yield* makeHostCatalog({ profile, show: (tool) => Result.succeed(describe(tool)) })
      return Context.make(ToolHost, { profile, register: catalog.register }).pipe(
        Context.add(ProgramHost, {
          tools: () => catalog.entries().map(({ shown }) => shown),
          call: (name, args, decide) => {
            const entry = catalog.find(name)
            return entry === undefined ? Effect.succeed(toolGone(name)) : runTool(entry, args, { profile, decide })
          }
        })
      )
    })
  )
}

const describe = (tool: HostTool): BridgeTool => ({
  name: tool.publicName,
  label: tool.label,
  namespace: tool.namespace,
  description: tool.description,
  access: tool.access,
  parametersSchema: tool.parametersSchema,
  ...(tool.outputSchema === undefined ? {} : { outputSchema: tool.outputSchema })
})

const policyOf = (approve: CreateBridgeOptions["approve"]) =>
  approve === undefined
    ? refuseWrites
    : askService({
        request: (request) =>
          Effect.map(
            Effect.promise(async (signal) => approve(request, signal)),
            (yes) => (yes ? Approval.allowedOnce : Approval.refused())
          )
      })

/** What a promise rejects with: the error itself, where it is one. */
const thrown = (cause: Cause.Cause<unknown>): Error => {
  const failure = Cause.squash(cause)
  return failure instanceof Error ? failure : new Error(String(failure))
}

const closed = new ToolCallFailed({ reason: "Disconnected", message: "the bridge was closed before the call settled" })

const layerOf = (options: CreateBridgeOptions) =>
  (options.roster === "memory"
    ? Bridge.layerNoRoster.pipe(Layer.provideMerge(MemoryRoster.layer))
    : Bridge.layer.pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))
  ).pipe(
    Layer.provideMerge(ProgramHost.layer),
    Layer.provide(BridgeConfig.layer(options)),
    // Standard output belongs to the program. Kept in the runtime: the calls log too.
    Layer.provideMerge(
      Layer.mergeAll(
        Layer.succeed(Logger.LogToStderr, true),
        Layer.succeed(References.MinimumLogLevel, options.logLevel ?? "Warn")
      )
    )
  )

/**
 * Starts a bridge. Resolves once the port is bound; rejects, and leaves nothing behind,
 * when a setting is out of its range, the port is taken, or the roster is malformed.
 *
 * **Example**
 *
 * ```ts
 * await using bridge = await createBridge({
 *   staticClients: [{ namespace: "todo", key: process.env.TODO_KEY ?? "" }],
 *   approve: ({ question }) => askOnScreen(question)
 * })
 * const todos = await bridge.call("todo__list")
 * ```
 */
export const createBridge = async (options: CreateBridgeOptions = {}): Promise<PromiseBridge> => {
  const runtime = ManagedRuntime.make(layerOf(options))
  const { decide } = policyOf(options.approve)
  const started = await runtime.runPromiseExit(Effect.context<ProgramHost | BridgeServer | WebSocketListener>())
  if (Exit.isFailure(started)) {
    await runtime.dispose()
    throw thrown(started.cause)
  }
  const context = started.value
  const { call, tools } = Context.get(context, ProgramHost)
  const server = Context.get(context, BridgeServer)
  const { port, url } = Context.get(context, WebSocketListener)
  let open = true

  const settle = async (calling: Effect.Effect<CallOutcome>, signal?: AbortSignal): Promise<unknown> => {
    // The runtime starts an effect before it looks at the signal.
    signal?.throwIfAborted()
    if (!open) throw closed
    const exit = await runtime.runPromiseExit(calling, signal && { signal })
    if (Exit.isFailure(exit)) {
      if (!Cause.hasInterruptsOnly(exit.cause)) throw thrown(exit.cause)
      signal?.throwIfAborted()
      throw closed
    }
    if (exit.value._tag === "Failure") throw new ToolCallFailed(exit.value.failure)
    return exit.value.value
  }

  /** The program asks by itself: that is the grant. */
  const administer = async (tool: string, args: JsonObject) => {
    await settle(call(tool, args, (write) => Effect.sync(() => granted(write))))
  }

  const close = () => {
    open = false
    return runtime.dispose()
  }

  return {
    url,
    port,
    tools,
    call: (name, args = {}, { signal } = {}) =>
      settle(
        Effect.suspend(() => call(name, args, decide)),
        signal
      ),
    register: (namespace, key) => administer("frontend_tools_register_client", { namespace, key }),
    revoke: (namespace) => administer("frontend_tools_revoke_client", { namespace }),
    sessions: () => runtime.runPromise(server.sessions),
    events: () => Stream.toAsyncIterableWith(server.events, context),
    close,
    [Symbol.asyncDispose]: close
  }
}
