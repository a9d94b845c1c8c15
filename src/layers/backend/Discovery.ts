import { Effect, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { isJsonObject } from "../../domain/aidream/Absent.ts"
import { closeNames, toWireName } from "../../domain/aidream/ToolIdentity.ts"
import { browserStateOf, LOAD_CHROME_TOOLS } from "./Capabilities.ts"
import { CurrentRun } from "./CurrentRun.ts"
import { CHROME_EXTENSION, isLive } from "./Executor.ts"
import { type CatalogTool, extensionCategories, extensionTools, needsDesktopBridge } from "./ToolCatalog.ts"

/** What the discovery tool says when it loaded something, or could have (part 10.3). */
export const LoadedTools = Schema.Struct({
  category: Schema.String,
  tools_loaded: Schema.Array(Schema.String),
  count: Schema.Int,
  missing_from_catalog: Schema.Array(Schema.String),
  skipped_admin_only: Schema.Array(Schema.String),
  skipped_missing_permission: Schema.Array(Schema.String),
  skipped_desktop_unavailable: Schema.Array(Schema.String),
  already_loaded: Schema.NullOr(Schema.Boolean),
  message: Schema.NullOr(Schema.String)
})
export type LoadedTools = typeof LoadedTools.Type

/** Why it did not. */
export const LoadFailure = Schema.Struct({
  error_type: Schema.Literals(["client_unavailable", "invalid_argument", "unknown_category", "forbidden"]),
  message: Schema.String,
  suggested_action: Schema.String
})
export type LoadFailure = typeof LoadFailure.Type

// Its arguments are checked by the handler: every mistake is answered with a result of its own kind.
const LoadChromeTools = Tool.dynamic(LOAD_CHROME_TOOLS, {
  description: "Loads a category of browser tools for the rest of this turn. They can be called from the next step on.",
  parameters: {
    type: "object",
    properties: { category: { type: "string", description: "The category to load." } },
    required: ["category"]
  },
  success: LoadedTools,
  failure: LoadFailure,
  failureMode: "return"
})

/** The always-on tool of clients with a browser. */
export const DiscoveryTools = Toolkit.make(LoadChromeTools)

/** The catalog entry of the discovery tool. */
export const discoveryEntry: CatalogTool = {
  name: LOAD_CHROME_TOOLS,
  description: Tool.getDescription(LoadChromeTools) ?? "",
  inputSchema: {
    type: "object",
    properties: { category: { type: "string", description: "The category to load." } },
    required: ["category"]
  },
  executors: []
}

/** Answers one call of the discovery tool; its changes go into the run's queue. */
export const loadCategory = Effect.fnUntraced(function* (
  catalog: ReadonlyArray<CatalogTool>,
  args: unknown,
  run: CurrentRun["Service"]
): Effect.fn.Return<LoadedTools, LoadFailure> {
  const { changes, client } = run
  const categories = extensionCategories(catalog)
  const listAll = `Call it again with one of: ${categories.join(", ")}.`
  const leave = () => changes.remove([LOAD_CHROME_TOOLS], LOAD_CHROME_TOOLS)

  if (!isLive(CHROME_EXTENSION, client.executors)) {
    leave()
    return yield* Effect.fail<LoadFailure>({
      error_type: "client_unavailable",
      message: "No browser is connected to this conversation, so there are no browser tools.",
      suggested_action: "Do not retry. Continue with the tools you have."
    })
  }

  const given = isJsonObject(args) ? args.category : undefined
  const category = typeof given === "string" ? given.trim() : ""
  if (category === "") {
    return yield* Effect.fail<LoadFailure>({
      error_type: "invalid_argument",
      message: "`category` is required and must be a non-empty string.",
      suggested_action: listAll
    })
  }
  if (!categories.includes(category)) {
    const [closest] = closeNames(category, categories)
    return yield* Effect.fail<LoadFailure>({
      error_type: "unknown_category",
      message: `There is no category "${category}".${closest === undefined ? "" : ` Did you mean "${closest}"?`}`,
      suggested_action: listAll
    })
  }

  const sorted = sort(
    extensionTools(catalog).filter((tool) => tool.category === category),
    run
  )
  const active = new Set(run.tools.map(({ wireName }) => wireName))
  const isLoaded = sorted.passed.length > 0 && sorted.passed.every((tool) => active.has(toWireName(tool.name)))
  const answer = (loaded: ReadonlyArray<CatalogTool>, rest: Partial<LoadedTools>): LoadedTools => ({
    category,
    tools_loaded: loaded.map(({ name }) => toWireName(name)),
    count: loaded.length,
    missing_from_catalog: [],
    skipped_admin_only: sorted.adminOnly,
    skipped_missing_permission: sorted.missingPermission,
    skipped_desktop_unavailable: sorted.desktopUnavailable,
    already_loaded: null,
    message: null,
    ...rest
  })

  if (isLoaded) {
    leave()
    return answer([], {
      already_loaded: true,
      message: `The tools of "${category}" are loaded already. Call them directly.`
    })
  }
  if (sorted.onlyAdminOnly) {
    return yield* Effect.fail<LoadFailure>({
      error_type: "forbidden",
      message: `The tools of "${category}" are for administrators only.`,
      suggested_action: "Do not retry. Continue with the tools you have."
    })
  }
  // Sets are per request: a client that remembers an earlier one is right about then, not about now.
  if (browserStateOf(client)?.loaded_categories.includes(category) === true) {
    yield* Effect.logDebug(`the client reports "${category}" as loaded, the run does not have it: loading`)
  }
  changes.add(
    sorted.passed.map((tool) => ({
      kind: "registered",
      name: tool.name,
      delegate: false,
      ...(tool.id === undefined ? {} : { tool_id: tool.id })
    })),
    LOAD_CHROME_TOOLS
  )
  leave()
  return answer(
    sorted.passed,
    sorted.passed.length === 0 ? { message: `No tool of "${category}" can be used now; see the skipped lists.` } : {}
  )
})

/** The handlers of `DiscoveryTools`. */
export const discoveryHandlers = (catalog: ReadonlyArray<CatalogTool>) =>
  DiscoveryTools.toLayer({
    [LOAD_CHROME_TOOLS]: (args) => Effect.flatMap(CurrentRun.current, (run) => loadCategory(catalog, args, run))
  })

const sort = (tools: ReadonlyArray<CatalogTool>, { client }: CurrentRun["Service"]) => {
  const state = browserStateOf(client)
  const isAdmin = state?.is_admin === true && client.mayAdminister
  const granted = new Set(state?.optional_permissions_granted ?? [])
  const hasDesktop = (state?.desktop_bridge ?? "none") !== "none"

  const passed: Array<CatalogTool> = []
  const adminOnly: Array<string> = []
  const missingPermission: Array<string> = []
  const desktopUnavailable: Array<string> = []
  for (const tool of tools) {
    const name = toWireName(tool.name)
    if (tool.adminOnly === true && !isAdmin) adminOnly.push(name)
    else if (!(tool.requiresPermissions ?? []).every((permission) => granted.has(permission)))
      missingPermission.push(name)
    else if (needsDesktopBridge(tool) && !hasDesktop) desktopUnavailable.push(name)
    else passed.push(tool)
  }
  return { passed, adminOnly, missingPermission, desktopUnavailable, onlyAdminOnly: adminOnly.length === tools.length }
}
