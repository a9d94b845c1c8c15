import { Cause, Effect, Exit, Layer } from "effect"
import { CallAborted } from "../../domain/bridge/BridgeError.ts"
import { type HostTool, WriteGrant, type WriteTool } from "../../domain/bridge/HostTool.ts"
import type { JsonObject } from "../../domain/bridge/RemoteTool.ts"
import type { DshContext, DshDecision, DshExecution, DshToolDefinition } from "./DshApi.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"
import { ToolHost, ToolRefused } from "./ToolHost.ts"

/** The text that the harness shows a person who is to allow a write; its beginning is a public promise (part h). */
export const approvalReason = (label: string): string =>
  `前端工具写操作 "${label}"：该工具被应用声明为写操作，需人工批准后才会转发给应用执行。`

const UNSUPPORTED = "unsupported JSON schema: "

/** The subset of JSON Schema that the harness itself accepts and checks. */
const harnessProfile = Effect.map(
  // An optional peer: it is there where this runs, and nowhere else is it loaded.
  Effect.promise(() => import("@deepseek-ai/dsh-tools")),
  (harness): SchemaProfile => {
    type Node = Parameters<typeof harness.validateJsonSchemaValue>[0]
    // The annotation is what TypeScript asks of an assertion.
    const assertSupported: (schema: unknown) => asserts schema is Node = harness.assertSupportedJsonSchema
    const supported = new WeakMap<JsonObject, Node>()

    const check = (schema: JsonObject): Node => {
      const known = supported.get(schema)
      if (known !== undefined) return known
      assertSupported(schema)
      supported.set(schema, schema)
      return schema
    }

    return {
      violations: (schema) => {
        try {
          check(schema)
          return []
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error)
          return (message.startsWith(UNSUPPORTED) ? message.slice(UNSUPPORTED.length) : message).split("; ")
        }
      },
      mismatches: (schema, value, subject) => harness.validateJsonSchemaValue(check(schema), value, subject)
    }
  }
)

/**
 * `ToolHost` over `ctx.tools` of DeepSeek Harness (bridge protocol, parts d, e and h).
 *
 * Every write asks through the harness's approval channel, once for each call: one
 * gate in front of all other listeners answers `ask`, and notes for the very
 * execution which tool was asked about. The tool's body makes the grant from that
 * note and runs nothing without it, so neither an earlier listener that allows by
 * itself nor a tool registered anew in between opens a write.
 */
export const layer = (ctx: DshContext): Layer.Layer<ToolHost> =>
  Layer.effect(
    ToolHost,
    Effect.gen(function* () {
      const profile = yield* harnessProfile
      const runPromiseExit = Effect.runPromiseExitWith(yield* Effect.context())
      const tools = new Map<string, HostTool>()
      const asked = new WeakMap<DshExecution, WriteTool>()

      const gate = (exec: DshExecution, next: () => Promise<DshDecision>): Promise<DshDecision> => {
        const tool = tools.get(exec.name)
        if (tool === undefined) return next()
        const mismatches = profile.mismatches(tool.parametersSchema, exec.arguments, "")
        if (mismatches.length > 0) {
          const reason = `invalid arguments for tool "${tool.publicName}": ${mismatches.join("; ")}`
          return Promise.resolve({ kind: "deny", reason })
        }
        if (tool.access === "read") return next()
        asked.set(exec, tool)
        return Promise.resolve({ kind: "ask", reason: approvalReason(tool.label) })
      }

      yield* Effect.acquireRelease(
        Effect.sync(() => ctx.on("tools/pre-execute", gate, { prepend: true })),
        (remove) => Effect.sync(remove)
      )

      const start = (tool: HostTool, args: unknown, exec: DshExecution) => {
        if (tool.access === "read") return tool.call(args)
        const grant = asked.get(exec) === tool ? WriteGrant.allowOnce(tool, args) : WriteGrant.refused
        asked.delete(exec)
        return Effect.provideService(tool.call(args), WriteGrant, grant)
      }

      const run = async (tool: HostTool, args: unknown, exec: DshExecution): Promise<unknown> => {
        const aborted = () => new Error(new CallAborted({ rawName: tool.rawName }).message)
        // The runtime starts an effect before it looks at the signal.
        if (exec.signal.aborted) throw aborted()
        const exit = await runPromiseExit(start(tool, args, exec), { signal: exec.signal })
        if (Exit.isSuccess(exit)) return exit.value
        if (Cause.hasInterruptsOnly(exit.cause)) throw aborted()
        const failure = Cause.squash(exit.cause)
        // The harness reads a code off errors it knows; ours has none that it could.
        throw new Error(failure instanceof Error ? failure.message : String(failure))
      }

      const definition = (tool: HostTool): DshToolDefinition => ({
        name: tool.publicName,
        description: tool.description,
        parameters: tool.parametersSchema,
        output: {
          schema: tool.outputSchema ?? {},
          render: (_args, value) => [{ type: "text", text: JSON.stringify(value, null, 2) ?? "null" }]
        },
        execute: (args, exec) => run(tool, args, exec),
        isConcurrencySafe: () => tool.access === "read"
      })

      return ToolHost.of({
        profile,
        register: (tool) =>
          Effect.asVoid(
            Effect.acquireRelease(
              Effect.try({
                try: () => {
                  const dispose = ctx.tools.register(definition(tool))
                  tools.set(tool.publicName, tool)
                  return dispose
                },
                catch: (error) =>
                  new ToolRefused({
                    publicName: tool.publicName,
                    message: error instanceof Error ? error.message : String(error)
                  })
              }),
              (dispose) =>
                Effect.sync(() => {
                  if (tools.get(tool.publicName) === tool) tools.delete(tool.publicName)
                  dispose()
                })
            )
          )
      })
    })
  )
