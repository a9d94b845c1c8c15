import { Result } from "effect"
import { encodeClientFrame } from "../domain/bridge/Frame.ts"
import { excess } from "./answer.ts"
import { type DeclaredTool, ToolsRefused } from "./DeclaredTool.ts"

/**
 * Why nobody answers: the session ended after the bridge was asked, the client has given
 * up, or it is over.
 */
export type DropReason = "cut" | "given up" | "stopped"

/** What becomes of a declared batch. */
export interface BatchListener {
  /** The bridge has all tools of the batch; their public names, in the order of the batch. */
  readonly registered: (publicNames: ReadonlyArray<string>) => void
  /** The batch is forgotten. May come after `registered`, when a later session refuses a tool. */
  readonly refused: (refusal: ToolsRefused) => void
  /** Nobody answers for now. The batch stays declared, and a later session may answer yet. */
  readonly dropped: (why: DropReason) => void
}

/** The line of a live session. */
export interface Line {
  readonly send: (text: string) => void
  readonly maxFrameBytes: number
}

interface Batch {
  readonly names: ReadonlyArray<string>
  readonly listener: BatchListener
}

interface Entry {
  readonly tool: DeclaredTool
  readonly name: string
  readonly owner: object
  readonly batch: Batch
  /** The bridge has had it, in this session or an earlier one. */
  confirmed: boolean
  /** A frame it shared with other batches was refused: next time it goes without them. */
  alone: boolean
}

interface Removal {
  /** Raw names that were declared when the removal was asked for. */
  readonly names: ReadonlyArray<string>
  readonly done: (names: ReadonlyArray<string>) => void
}

type Request =
  | { readonly kind: "register"; readonly entries: ReadonlyArray<Entry>; readonly groups: number }
  | { readonly kind: "unregister"; readonly names: ReadonlyArray<string> }

/**
 * Which tools the application wants the bridge to have, and the requests that bring
 * that about in whatever session there is (bridge protocol, part j).
 *
 * Declaring and removing only change the wanted set. While a session is live, the
 * difference to what the bridge has is sent: one request at a time, so that its answer
 * is the next one, removals first. Changes of one turn go together. A batch that is
 * declared is taken or refused as a whole; what an earlier session had is on a refusal
 * tried tool by tool, so that one bad tool costs only itself.
 */
export interface Registrations {
  /** The tool that a call by this raw name is for. */
  readonly lookup: (name: string) => DeclaredTool | undefined
  /**
   * Wants a batch of tools. A name that the same owner declared before is replaced; one
   * of another owner refuses the batch, and nothing of it is declared. Succeeds with
   * what takes back those tools that have not been replaced since.
   */
  readonly declare: (
    tools: ReadonlyArray<DeclaredTool>,
    owner: object,
    listener: BatchListener
  ) => Result.Result<() => void, ToolsRefused>
  /**
   * No longer wants these names. `done` gets those that were declared, once the bridge is
   * without them: it said so, or the session is over.
   */
  readonly remove: (names: ReadonlyArray<string>, done: Removal["done"]) => void
  /** A session began: the bridge has nothing yet. */
  readonly opened: (line: Line) => void
  /** The session ended. Whoever waits for an answer hears that; the wanted set stays. */
  readonly closed: () => void
  /** Nothing is going to be tried any more: whoever waits hears that. */
  readonly givenUp: () => void
  /** The client is over: whoever waits hears that. */
  readonly stopped: () => void
  readonly onRegistered: (publicNames: ReadonlyArray<string>) => void
  readonly onUnregistered: () => void
  /** The bridge refused the request under way. Says whether there was one that an error can be about. */
  readonly onError: (code: string, message: string) => boolean
}

/** What is taken or refused together: a declared batch, and each tool by itself once the bridge had it. */
const groupOf = (entry: Entry): object => (entry.confirmed ? entry : entry.batch)

const firstGroup = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const [first] = entries
  return first === undefined ? [] : entries.filter((entry) => groupOf(entry) === groupOf(first))
}

/** Registrations of nothing yet. `onRefused` hears of every refusal, whoever else does. */
export const makeRegistrations = (onRefused: (refusal: ToolsRefused) => void): Registrations => {
  // Insertion order is the order on the wire.
  const wanted = new Map<string, Entry>()
  const live = new Map<string, { readonly entry: Entry; readonly publicName: string }>()
  const waiting = new Set<Batch>()
  const removals = new Set<Removal>()
  let line: Line | undefined
  let request: Request | undefined
  let scheduled = false
  let over = false

  const schedule = () => {
    if (scheduled) return
    scheduled = true
    queueMicrotask(() => {
      scheduled = false
      proceed()
    })
  }

  const forget = (entry: Entry) => {
    if (wanted.get(entry.name) === entry) wanted.delete(entry.name)
  }

  const refuse = (entries: ReadonlyArray<Entry>, code: string, message: string) => {
    const refusal = new ToolsRefused({ code, message, names: entries.map(({ name }) => name) })
    const batches = new Set(entries.map(({ batch }) => batch))
    for (const entry of entries) forget(entry)
    // Who declared a name that was declared again since waits for the same answer.
    for (const batch of waiting) if (batch.names.some((name) => !wanted.has(name))) batches.add(batch)
    for (const batch of batches) {
      waiting.delete(batch)
      batch.listener.refused(refusal)
    }
    onRefused(refusal)
  }

  const drop = (batches: Iterable<Batch>, why: DropReason) => {
    for (const batch of Array.from(batches)) if (waiting.has(batch)) batch.listener.dropped(why)
  }

  /** Tells the batches that wait for a name which is no longer wanted. */
  const abandonRemoved = () => {
    for (const batch of waiting) {
      const removed = batch.names.find((name) => !wanted.has(name))
      if (removed === undefined) continue
      waiting.delete(batch)
      batch.listener.refused(
        new ToolsRefused({
          code: "invalid_tool",
          message: `tool "${removed}" was unregistered before its registration was confirmed`,
          names: batch.names
        })
      )
    }
  }

  /** Raw names that the bridge has and that are not wanted, or not as it has them. */
  const stale = (): ReadonlyArray<string> => {
    const names: Array<string> = []
    for (const [name, { entry }] of live) if (wanted.get(name) !== entry) names.push(name)
    return names
  }

  /** Tells those whose wish has come true. */
  const settle = () => {
    for (const batch of Array.from(waiting)) {
      const publicNames = batch.names.flatMap((name) => {
        const found = live.get(name)
        return found !== undefined && found.entry === wanted.get(name) ? [found.publicName] : []
      })
      if (publicNames.length < batch.names.length) continue
      waiting.delete(batch)
      batch.listener.registered(publicNames)
    }
    if (removals.size === 0) return
    const left = new Set(stale())
    if (request?.kind === "register") for (const { name } of request.entries) left.add(name)
    for (const removal of Array.from(removals)) {
      if (removal.names.some((name) => left.has(name))) continue
      removals.delete(removal)
      removal.done(removal.names)
    }
  }

  const proceed = (): void => {
    settle()
    if (over) drop(waiting, "stopped")
    if (line === undefined || request !== undefined) return
    const names = stale()
    if (names.length > 0) {
      request = { kind: "unregister", names }
      line.send(encodeClientFrame({ type: "unregister", names }))
      return
    }
    const missing = Array.from(wanted.values()).filter((entry) => live.get(entry.name)?.entry !== entry)
    const together = missing.filter(({ alone }) => !alone)
    const entries = together.length > 0 ? together : firstGroup(missing)
    if (entries.length === 0) return
    const groups = new Set(entries.map(groupOf)).size
    const text = `{"type":"register","tools":[${entries.map(({ tool }) => tool.text).join(",")}]}`
    if (excess(text, line.maxFrameBytes) === undefined) {
      request = { kind: "register", entries, groups }
      line.send(text)
      return
    }
    separateOrRefuse(
      entries,
      groups,
      "invalid_tool",
      `the batch is larger than the ${line.maxFrameBytes} bytes of a frame`
    )
    proceed()
  }

  /** Which of several groups is at fault shows when each goes alone. */
  const separateOrRefuse = (entries: ReadonlyArray<Entry>, groups: number, code: string, message: string) => {
    if (groups > 1) for (const entry of entries) entry.alone = true
    else refuse(entries, code, message)
  }

  return {
    lookup: (name) => wanted.get(name)?.tool,

    declare: (tools, owner, listener) => {
      const names = tools.map(({ name }) => name)
      const seen = new Set<string>()
      const taken = names.find((name) => {
        const entry = wanted.get(name)
        const repeated = seen.has(name)
        seen.add(name)
        return repeated || (entry !== undefined && entry.owner !== owner)
      })
      if (taken !== undefined) {
        const message = `tool "${taken}" is already registered by this client`
        return Result.fail(new ToolsRefused({ code: "invalid_tool", message, names }))
      }
      const batch: Batch = { names, listener }
      const entries = tools.map((tool): Entry => {
        const { name, text } = tool
        const entry: Entry = { tool, name, owner, batch, confirmed: false, alone: false }
        const current = live.get(name)
        if (current !== undefined && current.entry.tool.text === text) {
          // The bridge sees no difference: only the handler is another one.
          entry.confirmed = true
          live.set(name, { entry, publicName: current.publicName })
        }
        wanted.set(name, entry)
        return entry
      })
      waiting.add(batch)
      schedule()
      return Result.succeed(() => {
        for (const entry of entries) forget(entry)
        abandonRemoved()
        schedule()
      })
    },

    remove: (names, done) => {
      const declared = Array.from(new Set(names)).filter((name) => wanted.delete(name))
      abandonRemoved()
      removals.add({ names: declared, done })
      schedule()
    },

    opened: (next) => {
      line = next
      schedule()
    },

    closed: () => {
      const cut = request
      line = undefined
      request = undefined
      live.clear()
      if (cut?.kind === "register") drop(new Set(cut.entries.map(({ batch }) => batch)), "cut")
      schedule()
    },

    givenUp: () => drop(waiting, "given up"),

    stopped: () => {
      over = true
      schedule()
    },

    onRegistered: (publicNames) => {
      if (request?.kind !== "register") return
      const { entries } = request
      request = undefined
      for (const [index, entry] of entries.entries()) {
        entry.confirmed = true
        entry.alone = false
        live.set(entry.name, { entry, publicName: publicNames[index] ?? entry.name })
      }
      proceed()
    },

    onUnregistered: () => {
      if (request?.kind !== "unregister") return
      const { names } = request
      request = undefined
      for (const name of names) live.delete(name)
      proceed()
    },

    onError: (code, message) => {
      if (request?.kind !== "register") return false
      const { entries, groups } = request
      request = undefined
      separateOrRefuse(entries, groups, code, message)
      proceed()
      return true
    }
  }
}
