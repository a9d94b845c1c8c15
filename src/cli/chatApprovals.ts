/** Who decides about calls that need a yes. */
import { Effect, Stream, SubscriptionRef } from "effect"
import { type ApprovalAsk, Approvals } from "../layers/aidream/Approvals.ts"
import { MirrorRegistry } from "../layers/bridge/MirrorRegistry.ts"
import { approvalText, visible } from "../layers/host/ApprovalText.ts"
import { ChatInput } from "./chatInput.ts"
import { ChatOutput } from "./chatOutput.ts"

/** `ask` a person, let `always` run what may run unasked, or `never` let anything write. */
export type ApproveWrites = "ask" | "always" | "never"

/**
 * Puts every open question to the person, one after the other, or denies it when there
 * is nobody to ask. Runs until the scope closes; gives the handler of the person's lines.
 */
export const decideApprovals = Effect.fnUntraced(function* (approve: ApproveWrites) {
  const approvals = yield* Approvals
  const mirror = yield* MirrorRegistry
  const input = yield* ChatInput
  const output = yield* ChatOutput
  const mayAsk = input.interactive && approve !== "never"

  /** The question on the screen. */
  let shown: ApprovalAsk | undefined

  const decide = (ask: ApprovalAsk, allow: boolean) =>
    approvals.decide({ conversationId: ask.conversationId, callId: ask.callId, allow })

  const questionOf = (ask: ApprovalAsk): string => {
    const tool = mirror.lookup(ask.tool)
    const record =
      ask.authorization === undefined
        ? []
        : [`The backend asks for this approval: ${visible(JSON.stringify(ask.authorization))}`]
    const text = tool === undefined ? `Allow this one call of ${visible(ask.tool)}?` : approvalText(tool, ask.arguments)
    return [text, ...record, "y allows it, n denies it:"].join("\n")
  }

  const look = Effect.fnUntraced(function* (asks: ReadonlyArray<ApprovalAsk>) {
    if (!mayAsk) {
      for (const ask of asks) {
        if (!(yield* decide(ask, false))) continue
        const why = approve === "never" ? "--approve-writes is never" : "nobody can be asked; see --approve-writes"
        yield* output.tell(`· ${visible(ask.tool)} is denied: ${why}`)
      }
      return
    }
    if (shown !== undefined && !asks.includes(shown)) shown = undefined
    const [next] = asks
    if (shown !== undefined || next === undefined) return
    yield* output.tell(questionOf(next))
    shown = next
  })

  yield* Stream.runForEach(SubscriptionRef.changes(approvals.open), look).pipe(Effect.forkScoped)

  /** Takes a line if a question is up. Says whether it did. */
  return (line: string): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const ask = shown
      if (ask === undefined) return Effect.succeed(false)
      const word = line.trim().toLowerCase()
      const allow = ["y", "yes"].includes(word)
      if (!allow && !["n", "no"].includes(word)) return Effect.as(output.tell("y or n:"), true)
      // From here on this line has answered: the next question takes another.
      shown = undefined
      return Effect.as(decide(ask, allow), true)
    })
})
