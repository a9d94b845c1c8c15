import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { InlineToolName, type InlineToolSpec } from "../../domain/aidream/ToolSpec.ts"
import type { LibraryTool } from "./Tool.ts"

/** Somewhere else where tools live, for instance a bridge's registry. */
export interface ToolSource {
  /** The tools it has now. */
  readonly list: () => Iterable<LibraryTool>
  readonly lookup: (name: string) => LibraryTool | undefined
}

/** A tool of this name is registered already. */
export class ToolNameTaken extends Schema.TaggedError<ToolNameTaken>()("ToolNameTaken", { name: Schema.String }) {
  override get message() {
    return `a tool named ${this.name} is registered already`
  }
}

/**
 * Every tool this client can run: its own, and those of its sources.
 *
 * A name means one tool: own tools first, then the sources in the order they were
 * added. Nothing is cached, so a tool that leaves its source is gone at once.
 */
export class ToolLibrary extends Context.Service<
  ToolLibrary,
  {
    /** Adds own tools until the scope closes; all or none. */
    readonly register: (...tools: ReadonlyArray<LibraryTool>) => Effect.Effect<void, ToolNameTaken, Scope.Scope>
    /** Adds a source until the scope closes. */
    readonly addSource: (source: ToolSource) => Effect.Effect<void, never, Scope.Scope>
    readonly lookup: (name: string) => LibraryTool | undefined
    /** All tools, one per name, sorted by name. */
    readonly list: () => ReadonlyArray<LibraryTool>
    /** The tools a request must announce because the backend's registry lacks them. */
    readonly announced: () => ReadonlyArray<InlineToolSpec>
  }
>()("effect-frontend-tools/layers/aidream/ToolLibrary") {
  static readonly layer = Layer.sync(ToolLibrary, () => {
    const own = new Map<string, LibraryTool>()
    const sources = new Set<ToolSource>()

    const list = () => {
      const byName = new Map<string, LibraryTool>()
      for (const tools of [own.values(), ...Array.from(sources, (source) => source.list())]) {
        for (const tool of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool)
      }
      return [...byName.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
    }

    return ToolLibrary.of({
      register: (...tools) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            const names = tools.map((tool) => tool.name)
            const taken = names.find((name, index) => own.has(name) || names.indexOf(name) !== index)
            if (taken !== undefined) return Effect.fail(new ToolNameTaken({ name: taken }))
            for (const tool of tools) own.set(tool.name, tool)
            return Effect.void
          }),
          () =>
            Effect.sync(() => {
              for (const tool of tools) own.delete(tool.name)
            })
        ),
      addSource: (source) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            sources.add(source)
          }),
          () =>
            Effect.sync(() => {
              sources.delete(source)
            })
        ),
      lookup: (name) => {
        const tool = own.get(name)
        if (tool !== undefined) return tool
        for (const source of sources) {
          const found = source.lookup(name)
          if (found !== undefined) return found
        }
        return undefined
      },
      list,
      announced: () =>
        list().flatMap((tool) =>
          tool.announce === undefined || !isInlineName(tool.name)
            ? []
            : [{ kind: "inline", name: tool.name, description: tool.description, input_schema: tool.announce }]
        )
    })
  })

  /** A library with these tools of its own. */
  static readonly layerWith = (...tools: ReadonlyArray<LibraryTool>) =>
    Layer.effectDiscard(Effect.flatMap(ToolLibrary, (library) => library.register(...tools))).pipe(
      Layer.provideMerge(ToolLibrary.layer)
    )
}

const isInlineName = Schema.is(InlineToolName)
