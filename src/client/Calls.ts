import type { CallFrame } from "../domain/bridge/Frame.ts"
import { describeThrown, encodeAnswer, failed, type Outcome } from "./answer.ts"
import type { AbortReason, DeclaredTool, RunningCall } from "./DeclaredTool.ts"
import type { Line } from "./Registrations.ts"

interface Entry {
  running: RunningCall | undefined
}

/**
 * The calls that run in the application (bridge protocol, parts e and j).
 *
 * They run at once and all in parallel. An answer goes back on the line that its call
 * came in on; when that is gone, or the bridge cancelled the call, the handler is told
 * and its answer is dropped.
 */
export interface Calls {
  readonly size: () => number
  readonly start: (call: CallFrame, line: Line) => void
  /** Nobody waits for this call any more. */
  readonly cancel: (callId: string, reason: AbortReason) => void
  /** The line is gone, and with it whoever waited. */
  readonly abandon: () => void
}

/** No calls yet. `lookup` finds the tool of a raw name. */
export const makeCalls = (lookup: (name: string) => DeclaredTool | undefined): Calls => {
  const running = new Map<string, Entry>()

  const cancel: Calls["cancel"] = (callId, reason) => {
    const call = running.get(callId)
    if (call === undefined) return
    running.delete(callId)
    call.running?.abort(reason)
  }

  return {
    size: () => running.size,
    cancel,
    abandon: () => {
      for (const callId of Array.from(running.keys())) cancel(callId, "disconnected")
    },
    start: ({ args, callId, name }, { maxFrameBytes, send }) => {
      const call: Entry = { running: undefined }
      // On the books before it starts: a handler may answer before `start` returns.
      running.set(callId, call)
      const done = (outcome: Outcome) => {
        if (running.get(callId) !== call) return
        running.delete(callId)
        send(encodeAnswer(callId, outcome, maxFrameBytes))
      }
      const tool = lookup(name)
      if (tool === undefined) return done(failed("unknown_tool", `no frontend tool named "${name}" is registered`))
      try {
        call.running = tool.start(args, { callId, name }, done)
      } catch (error) {
        done(failed("internal", describeThrown(error)))
      }
    }
  }
}
