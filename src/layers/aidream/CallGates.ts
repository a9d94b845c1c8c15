import { Context, Effect, Layer, Schema } from "effect"
import { isJsonObject } from "../../domain/aidream/Absent.ts"
import type { Delegation } from "../../domain/aidream/Delegation.ts"
import { LocalPolicy } from "./LocalPolicy.ts"
import type { RunRecord } from "./RunRecords.ts"
import type { LibraryTool, PreparedCall } from "./Tool.ts"

/** A call may not run. The message is the model's answer. */
export class CallRefused extends Schema.TaggedError<CallRefused>()("CallRefused", { message: Schema.String }) {}

/**
 * The gates a call passes before anybody is asked about it (part 6.4, 1 to 6):
 * arguments, admin, platform, permissions, tier, tab group.
 */
export class CallGates extends Context.Service<
  CallGates,
  {
    readonly pass: (
      tool: LibraryTool,
      delegation: Delegation,
      record: RunRecord
    ) => Effect.Effect<PreparedCall, CallRefused>
  }
>()("effect-frontend-tools/layers/aidream/CallGates") {
  static readonly layer = Layer.effect(
    CallGates,
    Effect.gen(function* () {
      const policy = yield* LocalPolicy

      return CallGates.of({
        pass: Effect.fnUntraced(function* (tool, delegation, record) {
          const refuse = (message: string) => new CallRefused({ message })

          if (!isJsonObject(delegation.arguments)) return yield* refuse("The arguments do not fit: not an object")
          const prepared = yield* Effect.mapError(tool.prepare(delegation.arguments), ({ message }) => refuse(message))

          if (tool.adminOnly && !(yield* policy.isAdmin)) {
            return yield* refuse(`${tool.name} is restricted to admins`)
          }
          if (tool.platforms !== undefined && !tool.platforms.includes(policy.platform ?? "")) {
            return yield* refuse(`${tool.name} is not supported on this platform`)
          }
          const granted = yield* policy.permissions
          const missing = tool.permissions.filter((permission) => !granted.has(permission))
          if (missing.length > 0) {
            return yield* refuse(
              `${tool.name} needs the permission ${missing.join(", ")}, which is not granted. The user can grant it; then call again`
            )
          }
          if (prepared.tier !== "read" && prepared.tier !== "ask-user") {
            const group = yield* policy.group
            const pinned = record.pinnedTab === undefined ? [] : [record.pinnedTab]
            const outside = [...pinned, ...prepared.tabs].find((tab) => group !== undefined && !group.has(tab))
            if (outside !== undefined) {
              return yield* refuse(`Tab ${outside} is outside the tab group of this session`)
            }
          }
          return prepared
        })
      })
    })
  )
}
