/**
 * The ways in which a host inside a program lets a write run (bridge protocol, part
 * h).
 */
import { Deferred, Effect, Equal } from "effect"
import type { Approval } from "./Approval.ts"
import { approvalText } from "./ApprovalText.ts"
import { granted, refused, rejected, type Write, type WriteDecision, withdrawn } from "./WriteDecision.ts"

export interface WritePolicy {
  readonly decide: (write: Write) => Effect.Effect<WriteDecision>
  /** Notes that the call is put to a person now. Absent where questions take no second round. */
  readonly ask?: ((write: Write & { readonly toolCallId: string }) => void) | undefined
}

/** Lets no write run. */
export const refuseWrites: WritePolicy = {
  decide: ({ tool }) =>
    Effect.succeed(
      refused(
        `tool "${tool.publicName}" writes, which needs a person's approval, and this program has no way to ask for one. Nothing was run.`
      )
    )
}

/** Asks the program's own service for each write, while the call waits. */
export const askService = (approval: Approval["Service"]): WritePolicy => ({
  decide: (write) => {
    const { args, gone, tool, toolCallId } = write
    const { description, label, namespace, publicName, rawName } = tool
    return Effect.suspend(() => {
      const question = approvalText(tool, args)
      return approval.request({ publicName, label, namespace, rawName, description, args, toolCallId, question })
    }).pipe(
      Effect.map((decision) => (decision._tag === "AllowedOnce" ? granted(write) : rejected(tool, decision.reason))),
      Effect.catchDefect((defect) =>
        Effect.logError(`the approval of tool "${publicName}" failed unexpectedly`, defect).pipe(
          Effect.as(refused(`tool "${publicName}" requires approval, and asking for it failed; nothing was run`))
        )
      ),
      // Losing the race interrupts the question.
      Effect.raceFirst(Effect.as(Deferred.await(gone), withdrawn(tool)))
    )
  }
})

/** How many questions may be open at a time; beyond that the oldest is forgotten. */
const MAX_QUESTIONS = 1024

/**
 * Lets a write run that was asked about in the conversation (`Tool.needsApproval`) and
 * that the conversation now runs, which it does after a yes.
 *
 * Each question counts once: providers repeat the ids of calls, and a yes of long ago
 * must not let a second call pass.
 */
export const askInConversation = (): WritePolicy => {
  // A Set keeps the order of arrival.
  const questions = new Set<Write>()

  const find = ({ args, tool, toolCallId }: Write) => {
    for (const asked of questions) {
      if (asked.toolCallId === toolCallId && asked.tool === tool && Equal.equals(asked.args, args)) return asked
    }
    return undefined
  }

  return {
    ask: (write) => {
      for (const asked of questions) {
        if (questions.size < MAX_QUESTIONS) break
        questions.delete(asked)
      }
      questions.add(write)
    },
    decide: (write) =>
      Effect.sync(() => {
        const asked = find(write)
        if (asked === undefined) {
          return refused(
            `no approval holds for this call of tool "${write.tool.publicName}": it was used before, or the tool was replaced since. Nothing was run; call it again to ask anew`
          )
        }
        questions.delete(asked)
        return granted(write)
      })
  }
}
