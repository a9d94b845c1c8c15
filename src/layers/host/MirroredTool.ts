/** A mirrored tool in the form that `effect/ai` hands to a model. */
import { Schema } from "effect"
import { Tool } from "effect/ai"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import { MirroredFailure } from "./CallOutcome.ts"

/**
 * Its parameters are the application's JSON Schema as it is. A result is any JSON
 * value, and a failed call is a result with `isFailure` and a `MirroredFailure`.
 */
export type MirroredTool = Tool.Tool<
  string,
  {
    readonly parameters: typeof Schema.Unknown
    readonly success: typeof Schema.Unknown
    readonly failure: typeof MirroredFailure
    readonly failureMode: "return"
  }
>

export const makeMirroredTool = (
  { access, description, label, parametersSchema, publicName }: HostTool,
  needsApproval: Tool.NeedsApprovalFunction<typeof Schema.Unknown> | undefined
): MirroredTool =>
  Tool.dynamic(publicName, {
    description,
    parameters: parametersSchema,
    success: Schema.Unknown,
    failure: MirroredFailure,
    failureMode: "return",
    needsApproval
  })
    .annotate(Tool.Title, label)
    .annotate(Tool.Readonly, access === "read")
    .annotate(Tool.Destructive, access === "write")
    // Strict modes take a subset of JSON Schema that applications know nothing of.
    .annotate(Tool.Strict, false)
