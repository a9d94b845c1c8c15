import { Context, Layer, Schema } from "effect"
import { JsonObject } from "../../domain/aidream/Absent.ts"
import { sameTool, toWireName } from "../../domain/aidream/ToolIdentity.ts"
import { CHROME_EXTENSION, sameExecutor } from "./Executor.ts"

/** A registered tool. */
export const CatalogTool = Schema.Struct({
  /** The canonical name, `<bundle>:<local>`, or a bare one. What the ledger keeps. */
  name: Schema.NonEmptyString,
  /** The id in a registry of the embedding team, if it has one. */
  id: Schema.optional(Schema.String),
  description: Schema.String,
  inputSchema: JsonObject,
  /** What the discovery tool loads together. */
  category: Schema.optional(Schema.String),
  /** Client executors that can run it. Empty for a tool that only the server runs. */
  executors: Schema.Array(Schema.String),
  /** Gate: offered only while this executor is live, whoever runs the tool. */
  requiresExecutor: Schema.optional(Schema.String),
  /** Advertised to administrators only; the client enforces it. */
  adminOnly: Schema.optional(Schema.Boolean),
  /** Permissions the person must have granted at run time. */
  requiresPermissions: Schema.optional(Schema.Array(Schema.String)),
  /** Needs a reachable desktop behind the browser. Default: `desktop_run_command` does. */
  requiresDesktopBridge: Schema.optional(Schema.Boolean)
})
export type CatalogTool = typeof CatalogTool.Type

/**
 * The tools this backend knows, whoever runs them. The embedding team supplies it.
 *
 * Tools of `ServerTools` need no entry, unless they have a category, a gate or a
 * client executor beside the server's implementation.
 */
export class ToolCatalog extends Context.Service<
  ToolCatalog,
  {
    readonly tools: ReadonlyArray<CatalogTool>
  }
>()("effect-frontend-tools/layers/backend/ToolCatalog") {
  static readonly layer = (tools: ReadonlyArray<CatalogTool>) => Layer.succeed(ToolCatalog, { tools })
}

/** The tool of a name, in any of its spellings. An id wins over a name. */
export const findTool = (
  tools: ReadonlyArray<CatalogTool>,
  wanted: { readonly name: string; readonly id?: string | undefined }
): CatalogTool | undefined =>
  (wanted.id === undefined ? undefined : tools.find((tool) => tool.id === wanted.id)) ??
  tools.find((tool) => sameTool(tool.name, wanted.name))

/** Sorted distinct categories of the tools a browser extension runs. */
export const extensionCategories = (tools: ReadonlyArray<CatalogTool>): ReadonlyArray<string> =>
  Array.from(
    new Set(extensionTools(tools).flatMap(({ category }) => (category === undefined ? [] : [category])))
  ).sort()

/** Tools bound to a browser extension. */
export const extensionTools = (tools: ReadonlyArray<CatalogTool>): ReadonlyArray<CatalogTool> =>
  tools.filter(({ executors }) => executors.some((executor) => sameExecutor(executor, CHROME_EXTENSION)))

/** Whether a tool needs a desktop behind the browser. */
export const needsDesktopBridge = (tool: CatalogTool): boolean =>
  tool.requiresDesktopBridge ?? /(^|__)desktop_run_command$/.test(toWireName(tool.name))
