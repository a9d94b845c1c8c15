import type { ToolSpec } from "../../domain/aidream/ToolSpec.ts"

/** A change of a run's tool set, asked for while the run goes on (part 10.3). */
export type ToolChange =
  | { readonly action: "add"; readonly specs: ReadonlyArray<ToolSpec>; readonly by: string }
  | { readonly action: "remove"; readonly names: ReadonlyArray<string>; readonly by: string }

/**
 * The changes a run has been asked for and not yet made.
 *
 * One object per run, shared by reference with every tool of the run: tools run in
 * fibers of their own, and what one of them queues must be there for the next model
 * call. It never affects the iteration that queued it.
 */
export interface ToolChanges {
  /** Without specs: nothing happens. */
  readonly add: (specs: ReadonlyArray<ToolSpec>, by: string) => void
  /** Without names: nothing happens. */
  readonly remove: (names: ReadonlyArray<string>, by: string) => void
  /** What waits, in order, still waiting. */
  readonly peek: () => ReadonlyArray<ToolChange>
  /** What waits, in order; nothing waits afterwards. */
  readonly take: () => ReadonlyArray<ToolChange>
}

export const make = (): ToolChanges => {
  const entries: Array<ToolChange> = []
  return {
    add: (specs, by) => {
      if (specs.length > 0) entries.push({ action: "add", specs, by })
    },
    remove: (names, by) => {
      if (names.length > 0) entries.push({ action: "remove", names, by })
    },
    peek: () => entries.slice(),
    take: () => entries.splice(0)
  }
}
