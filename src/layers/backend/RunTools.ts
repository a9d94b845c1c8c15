import { toWireName } from "../../domain/aidream/ToolIdentity.ts"
import type { ToolSpec } from "../../domain/aidream/ToolSpec.ts"
import type { Problem } from "./Refusal.ts"
import { findTool } from "./ToolCatalog.ts"
import type { ToolChanges } from "./ToolChanges.ts"
import { type MergeInput, mergeTools, type ToolSet } from "./ToolMerge.ts"

/** What a drain really changed (part 10.4). */
export interface ToolsChanged {
  readonly added: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly activeCount: number
  /** Who asked, in the order of the queue. */
  readonly sources: ReadonlyArray<string>
}

/** The tool set of one run, as it changes. */
export interface RunTools {
  readonly current: () => ToolSet
  /**
   * Makes the changes that wait, removals first, and says what is different. Nothing
   * is, when the queue was empty or had no effect. Problems leave the set as it was.
   */
  readonly drain: (changes: ToolChanges) => {
    readonly changed: ToolsChanged | undefined
    readonly problems: ReadonlyArray<Problem>
  }
}

/** Tools of earlier runs of the turn are named by `loadedTools`; those that no longer exist are left out. */
export const make = (input: Omit<MergeInput, "added" | "removed">, loadedTools: ReadonlyArray<string>): RunTools => {
  let added: ReadonlyArray<ToolSpec> = loadedTools
    .filter((name) => findTool(input.catalog, { name }) !== undefined)
    .map((name) => ({ kind: "registered", name, delegate: false }))
  let removed: ReadonlyArray<string> = []
  let current = mergeTools({ ...input, added, removed })

  return {
    current: () => current,
    drain: (changes) => {
      const entries = changes.take()
      if (entries.length === 0) return { changed: undefined, problems: [] }
      let nextAdded = added
      let nextRemoved = removed
      for (const entry of entries) {
        if (entry.action !== "remove") continue
        const names = new Set(entry.names.map(toWireName))
        nextRemoved = [...nextRemoved, ...names]
        nextAdded = nextAdded.filter((spec) => !names.has(wireNameOf(spec)))
      }
      for (const entry of entries) {
        if (entry.action !== "add") continue
        const names = new Set(entry.specs.map(wireNameOf))
        nextAdded = [...nextAdded, ...entry.specs]
        nextRemoved = nextRemoved.filter((name) => !names.has(name))
      }
      const next = mergeTools({ ...input, added: nextAdded, removed: nextRemoved })
      if (next.problems.length > 0) return { changed: undefined, problems: next.problems }
      const before = new Set(current.tools.map(({ wireName }) => wireName))
      const after = new Set(next.tools.map(({ wireName }) => wireName))
      added = nextAdded
      removed = nextRemoved
      current = next
      const changed: ToolsChanged = {
        added: Array.from(after).filter((name) => !before.has(name)),
        removed: Array.from(before).filter((name) => !after.has(name)),
        activeCount: after.size,
        sources: entries.map(({ action, by }) => `${action === "add" ? "+" : "-"}by:${by}`)
      }
      return {
        changed: changed.added.length === 0 && changed.removed.length === 0 ? undefined : changed,
        problems: []
      }
    }
  }
}

const wireNameOf = (spec: ToolSpec): string => (spec.kind === "agent" ? "" : toWireName(spec.name))
