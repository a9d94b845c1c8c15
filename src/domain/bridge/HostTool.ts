/**
 * A tool as a host lists and calls it: what a host adapter gets, whichever way the
 * tool came in (bridge protocol, parts d and h).
 */
import { Context, Effect } from "effect"
import { CallError, NotGranted } from "./BridgeError.ts"
import type { JsonObject } from "./RemoteTool.ts"
import type { PublicName, RawName } from "./ToolName.ts"

interface HostToolFields {
  readonly publicName: PublicName
  /** What an approval channel and a log call it: `namespace.raw`. */
  readonly label: string
  /** Whose tool it is: an application's namespace, or `frontend_tools` for the bridge's own. */
  readonly namespace: string
  /** The name that its owner gave it. */
  readonly rawName: RawName
  readonly description: string
  /** JSON Schema of the arguments, with an object at its root. */
  readonly parametersSchema: JsonObject
  /** JSON Schema of a result; absent means any JSON value. */
  readonly outputSchema?: JsonObject | undefined
}

/** A tool that changes nothing: it may run without asking. */
export interface ReadTool extends HostToolFields {
  readonly access: "read"
  /** Runs the tool. Interruption is the caller's abort. */
  readonly call: (args: unknown) => Effect.Effect<unknown, CallError>
}

/** A tool that writes: each call needs a grant for itself. */
export interface WriteTool extends HostToolFields {
  readonly access: "write"
  /**
   * Runs the tool. Fails with `NotGranted`, and reaches nobody, unless the grant was
   * made for this tool and these very arguments and has not been used. Interruption
   * is the caller's abort.
   */
  readonly call: (args: unknown) => Effect.Effect<unknown, CallError, WriteGrant>
}

export type HostTool = ReadTool | WriteTool

/**
 * The permission for one call of one write tool.
 *
 * Only a host adapter makes one (`WriteGrant.allowOnce`), and only after its own
 * approval channel said yes to exactly that call. It is bound to the `WriteTool`
 * object and the arguments object that were asked about: a tool registered anew
 * under the same name is another object, so an old grant cannot run it.
 */
export class WriteGrant extends Context.Service<
  WriteGrant,
  {
    /** Uses the grant up. Says whether it was for this call and still unused. */
    readonly redeem: (tool: WriteTool, args: unknown) => boolean
  }
>()("effect-frontend-tools/domain/bridge/WriteGrant") {
  /** No grant: what a call gets whose approval was denied. */
  static readonly refused: WriteGrant["Service"] = { redeem: () => false }

  /** A grant for one call of `tool` with `args`. */
  static readonly allowOnce = (tool: WriteTool, args: unknown): WriteGrant["Service"] => {
    let unused = true
    return {
      redeem: (asked, given) => {
        const granted = unused && asked === tool && Object.is(given, args)
        if (granted) unused = false
        return granted
      }
    }
  }
}

/**
 * Makes a write tool of its fields and the effect that writes: the one place where
 * a grant is demanded and used up.
 */
export const makeWriteTool = (
  fields: Omit<WriteTool, "access" | "call">,
  write: (args: unknown) => Effect.Effect<unknown, CallError>
): WriteTool => {
  const tool: WriteTool = {
    ...fields,
    access: "write",
    call: (args) =>
      Effect.flatMap(WriteGrant, (grant) =>
        grant.redeem(tool, args)
          ? write(args)
          : Effect.fail(new CallError({ reason: new NotGranted({ publicName: tool.publicName }) }))
      )
  }
  return tool
}
