import { TOOL_NAME_PATTERN } from "../../domain/bridge/ToolName.ts"

/** What the companion uses of the harness. */
interface InvariantContext {
  readonly invariants: {
    readonly register: (packageName: string, installer: Installer) => () => void
  }
}

interface WatchedContext {
  readonly tools: { readonly schemas: () => ReadonlyArray<{ readonly name: string }> }
  readonly on: (event: "tools/change", listener: () => void) => () => void
}

interface Installer {
  (ctx: WatchedContext, fail: (message: string) => never): void
  readonly inject?: ReadonlyArray<string>
}

export const name = "frontend-tools-bridge-invariant"

export const inject = ["invariants"]

/**
 * Every name on the list is one that a provider takes. One that is not makes it refuse
 * the whole request, so it has to be noticed where it is registered.
 */
const install: Installer = Object.assign(
  (ctx: WatchedContext, fail: (message: string) => never) => {
    ctx.on("tools/change", () => {
      for (const tool of ctx.tools.schemas()) {
        if (!TOOL_NAME_PATTERN.test(tool.name)) fail(`tool name "${tool.name}" must match ${TOOL_NAME_PATTERN.source}`)
      }
    })
  },
  { inject: ["tools"] }
)

/** Registers the package's invariants. Resolves with what takes them back. */
export const apply = (ctx: InvariantContext): Promise<() => void> =>
  Promise.resolve(ctx.invariants.register("effect-frontend-tools", install))
