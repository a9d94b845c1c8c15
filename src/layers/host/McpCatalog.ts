/**
 * The tools that an MCP client can see right now, in the form and the order in
 * which it sees them.
 */
import { Deferred, Effect, Exit, Queue, Result, Schema, type Scope } from "effect"
import { McpSchema } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import { jsonSchemaProfile } from "./SchemaProfile.ts"
import { ToolRefused } from "./ToolHost.ts"

/** One registration: a tool registered anew under the same name is another entry. */
export interface McpEntry {
  readonly tool: HostTool
  /** The tool as `tools/list` shows it: made once, so that it stays the same byte for byte. */
  readonly descriptor: McpSchema.Tool
  /** Done when the registration has ended. */
  readonly gone: Deferred.Deferred<void>
}

export interface McpCatalog {
  /** Lists a tool until the scope closes. */
  readonly register: (tool: HostTool) => Effect.Effect<void, ToolRefused, Scope.Scope>
  readonly find: (publicName: string) => McpEntry | undefined
  /** Sorted by public name, in the order of UTF-16 units. */
  readonly entries: () => ReadonlyArray<McpEntry>
  /** Holds one element while there is a change that nobody has taken yet. */
  readonly changes: Queue.Dequeue<void>
}

/** Whether MCP can carry results of this schema as structured content. */
export const isStructured = (schema: HostTool["outputSchema"]): boolean => schema?.type === "object"

const decodeDescriptor = Schema.decodeUnknownResult(McpSchema.Tool)

const describe = (tool: HostTool): Result.Result<McpSchema.Tool, string> => {
  const { outputSchema, parametersSchema } = tool
  const violations = [parametersSchema, ...(outputSchema === undefined ? [] : [outputSchema])].flatMap(
    jsonSchemaProfile.violations
  )
  if (violations.length > 0) return Result.fail(violations.join("; "))
  const reads = tool.access === "read"
  return decodeDescriptor({
    name: tool.publicName,
    title: tool.label,
    description: tool.description,
    inputSchema: parametersSchema,
    ...(isStructured(outputSchema) ? { outputSchema } : {}),
    annotations: { title: tool.label, readOnlyHint: reads, destructiveHint: !reads }
  }).pipe(Result.mapError((error) => error.message))
}

/** A catalog that refuses the `reserved` names, which the host uses itself. */
export const makeMcpCatalog = Effect.fnUntraced(function* (reserved: ReadonlySet<string>) {
  const entries = new Map<string, McpEntry>()
  const changes = yield* Queue.sliding<void>(1)
  let sorted: ReadonlyArray<McpEntry> | undefined

  const changed = () => {
    sorted = undefined
    Queue.offerUnsafe(changes, undefined)
  }

  const add = (entry: McpEntry) => {
    entries.set(entry.tool.publicName, entry)
    changed()
  }

  const remove = (entry: McpEntry) => {
    entries.delete(entry.tool.publicName)
    changed()
    Deferred.doneUnsafe(entry.gone, Exit.void)
  }

  const catalog: McpCatalog = {
    register: Effect.fnUntraced(function* (tool) {
      const { publicName } = tool
      if (entries.has(publicName) || reserved.has(publicName)) {
        return yield* new ToolRefused({ publicName, message: `tool "${publicName}" is already registered` })
      }
      const descriptor = describe(tool)
      if (Result.isFailure(descriptor)) {
        return yield* new ToolRefused({ publicName, message: `tool "${publicName}": ${descriptor.failure}` })
      }
      const entry: McpEntry = { tool, descriptor: descriptor.success, gone: Deferred.makeUnsafe() }
      yield* Effect.acquireRelease(
        Effect.sync(() => add(entry)),
        () => Effect.sync(() => remove(entry))
      )
    }),
    find: (publicName) => entries.get(publicName),
    entries: () => {
      sorted ??= [...entries.values()].sort((one, other) => (one.tool.publicName < other.tool.publicName ? -1 : 1))
      return sorted
    },
    changes
  }
  return catalog
})
