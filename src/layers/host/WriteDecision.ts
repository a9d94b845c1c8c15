/** Whether one call of a write tool may run, and the words for it (bridge protocol, part h). */
import type { Deferred } from "effect"
import { WriteGrant, type WriteTool } from "../../domain/bridge/HostTool.ts"

/** One call of a write tool, with arguments that fit it. */
export interface Write {
  readonly tool: WriteTool
  /** The object that the tool is called with. */
  readonly args: unknown
  /** The model's id of the call, where there is one. */
  readonly toolCallId: string | undefined
  /** Done when the tool is no longer registered. */
  readonly gone: Deferred.Deferred<void>
}

export type WriteDecision =
  | { readonly _tag: "Granted"; readonly grant: WriteGrant["Service"] }
  /** `message` tells the model why, and what could be done about it. */
  | { readonly _tag: "Refused"; readonly message: string }

/** Lets this call run, once. */
export const granted = ({ args, tool }: Pick<Write, "args" | "tool">): WriteDecision => ({
  _tag: "Granted",
  grant: WriteGrant.allowOnce(tool, args)
})

export const refused = (message: string): WriteDecision => ({ _tag: "Refused", message })

/** A person said no. */
export const rejected = ({ publicName }: WriteTool, reason?: string): WriteDecision =>
  refused(`the user rejected tool "${publicName}"${reason === undefined ? "" : `: ${reason}`}`)

/** The tool went before anybody had decided. */
export const withdrawn = ({ publicName }: WriteTool): WriteDecision =>
  refused(`tool "${publicName}" was taken back or replaced before it was approved; nothing was run`)
