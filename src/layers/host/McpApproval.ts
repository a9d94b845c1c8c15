/**
 * How an MCP host lets a write run: it asks the person at the client, by an
 * elicitation, for each call anew (bridge protocol, part h).
 *
 * Revisions with sessions carry the question as a request of the server. Revision
 * 2026-07-28 carries it in the result of the call, and the client sends the call
 * again with the answer.
 */
import { Clock, Deferred, Effect, Equal, Option } from "effect"
import { McpSchema } from "effect/ai"
import { SecureRandom } from "effect/crypto"
import type { WriteTool } from "../../domain/bridge/HostTool.ts"
import { approvalText } from "./ApprovalText.ts"
import { granted, refused, rejected, type Write, type WriteDecision, withdrawn } from "./WriteDecision.ts"

/** `ask` a person for each write, `always` let it run, or `never`. */
export type ApproveWrites = "ask" | "always" | "never"

/** The client has to ask and to call again. */
export interface McpAsk {
  readonly _tag: "Ask"
  readonly request: McpSchema.InputRequired
}

export type McpDecision = WriteDecision | McpAsk

export interface McpApproval {
  readonly decide: (write: Write) => Effect.Effect<McpDecision, never, McpSchema.McpRequestContext>
}

/** A question of revision 2026-07-28 that is on its way. */
interface Pending {
  readonly tool: WriteTool
  readonly args: unknown
  readonly askedAt: number
}

const QUESTION = "approval"
const ANSWER_WITHIN_MILLIS = 10 * 60 * 1000
const MAX_PENDING = 64

const canAsk = ({ elicitation }: McpSchema.ClientCapabilities): boolean =>
  elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)

const cannotAsk = ({ publicName }: WriteTool) =>
  refused(
    `tool "${publicName}" writes, which needs a person's approval, and this MCP client cannot ask for one: ` +
      "it does not support elicitation. Nothing was run. Use a client that does, " +
      "or have the person who runs this server set approve-writes to always"
  )

const form = ({ args, tool }: Write) =>
  ({
    mode: "form",
    message: approvalText(tool, args),
    requestedSchema: { type: "object", properties: {} }
  }) as const

const decision = (action: unknown, write: Write): McpDecision => {
  switch (action) {
    case "accept":
      return granted(write)
    case "decline":
      return rejected(write.tool)
    default:
      return refused(`the question whether tool "${write.tool.publicName}" may run was closed without an answer`)
  }
}

const askNow = (client: McpSchema.McpServerClient["Service"], write: Write) =>
  client.getClient.pipe(
    Effect.flatMap((reverse) => reverse.elicit(new McpSchema.ElicitRequestFormParams(form(write)))),
    Effect.map((answer) => decision(answer.action, write)),
    Effect.catchTags({
      McpReverseOperationUnsupported: () => Effect.succeed(cannotAsk(write.tool)),
      McpReverseOperationError: () =>
        Effect.succeed(refused(`the MCP client failed to ask whether tool "${write.tool.publicName}" may run`))
    }),
    Effect.scoped,
    // Losing the race interrupts the question, which withdraws it at the client too.
    Effect.raceFirst(Effect.as(Deferred.await(write.gone), withdrawn(write.tool)))
  )

const makeRounds = () => {
  const pending = new Map<string, Pending>()

  const forgetOldest = () => {
    for (const state of pending.keys()) {
      if (pending.size < MAX_PENDING) return
      pending.delete(state)
    }
  }

  const ask = (write: Write, now: number): McpDecision => {
    forgetOldest()
    const requestState = SecureRandom.uuidV4Unsafe()
    pending.set(requestState, { tool: write.tool, args: write.args, askedAt: now })
    return {
      _tag: "Ask",
      request: new McpSchema.InputRequired({
        requestState,
        inputRequests: { [QUESTION]: { method: "elicitation/create", params: form(write) } }
      })
    }
  }

  const settle = (requestState: string, action: unknown, write: Write, now: number): McpDecision => {
    const asked = pending.get(requestState)
    pending.delete(requestState)
    const { publicName } = write.tool
    if (asked === undefined || now - asked.askedAt >= ANSWER_WITHIN_MILLIS) {
      return refused(`the approval of tool "${publicName}" was used before or came too late; call it again`)
    }
    if (asked.tool !== write.tool) {
      return asked.tool.publicName === publicName
        ? withdrawn(write.tool)
        : refused(`the approval was for tool "${asked.tool.publicName}", not for tool "${publicName}"`)
    }
    if (!Equal.equals(asked.args, write.args)) {
      return refused(`the approval of tool "${publicName}" was for other arguments`)
    }
    return decision(action, write)
  }

  return Effect.fnUntraced(function* (context: McpSchema.McpRequestContext["Service"], write: Write) {
    const now = yield* Clock.currentTimeMillis
    const { inputResponses, requestState } = context
    return requestState === undefined
      ? ask(write, now)
      : settle(requestState, inputResponses?.[QUESTION]?.action, write, now)
  })
}

/** One host's approval. A question of revision 2026-07-28 holds for ten minutes, and the newest 64 of them hold. */
export const makeMcpApproval = (mode: ApproveWrites): McpApproval => {
  const inRounds = makeRounds()

  const ask = Effect.fnUntraced(function* (write: Write) {
    const context = yield* McpSchema.McpRequestContext
    if (!canAsk(context.clientCapabilities)) return cannotAsk(write.tool)
    const client = yield* Effect.serviceOption(McpSchema.McpServerClient)
    return yield* Option.isSome(client) ? askNow(client.value, write) : inRounds(context, write)
  })

  switch (mode) {
    case "ask":
      return { decide: ask }
    case "always":
      return { decide: (write) => Effect.sync(() => granted(write)) }
    case "never":
      return {
        decide: ({ tool }) =>
          Effect.succeed(refused(`tool "${tool.publicName}" writes, and this server has approve-writes set to never`))
      }
  }
}
