import { Effect } from "effect"
import { type HostTool, WriteGrant } from "../../domain/bridge/HostTool.ts"
import { type LibraryTool, targetsOf } from "./Tool.ts"
import type { ToolSource } from "./ToolLibrary.ts"

/** Where host tools come from, for instance a bridge's registry. */
export interface HostTools {
  readonly list: () => Iterable<HostTool>
  readonly lookup: (publicName: string) => HostTool | undefined
}

/**
 * Host tools as a source of the library: what applications registered over the
 * bridge is what a remote agent can use.
 *
 * Read-only tools are tier `read`, others `action`. The dispatcher runs a tool only
 * after its gates, the approval among them, so this is where a write's grant is made:
 * for that call, with those arguments.
 */
export const hostToolSource = (tools: HostTools): ToolSource => ({
  list: function* () {
    for (const tool of tools.list()) yield libraryTool(tool)
  },
  lookup: (name) => {
    const tool = tools.lookup(name)
    return tool === undefined ? undefined : libraryTool(tool)
  }
})

const libraryTool = (tool: HostTool): LibraryTool => {
  const tier = tool.access === "read" ? "read" : "action"
  return {
    name: tool.publicName,
    description: tool.description,
    category: tool.namespace,
    tier,
    adminOnly: false,
    platforms: undefined,
    permissions: [],
    announce: tool.parametersSchema,
    // The bridge has its own deadline for a call.
    timeout: undefined,
    // The application checks its arguments itself.
    prepare: (args) =>
      Effect.succeed({
        tier,
        ...targetsOf(args),
        run: () =>
          tool.access === "read"
            ? tool.call(args)
            : tool.call(args).pipe(Effect.provideService(WriteGrant, WriteGrant.allowOnce(tool, args)))
      })
  }
}
