import { Context, type Effect, Schema, type Scope } from "effect"
import type { HostTool } from "../../domain/bridge/HostTool.ts"
import type { SchemaProfile } from "./SchemaProfile.ts"

/** The host does not take a tool. Its message goes to the application as it is. */
export class ToolRefused extends Schema.TaggedError<ToolRefused>()("ToolRefused", {
  publicName: Schema.String,
  message: Schema.String
}) {}

/**
 * Where the model is: the seam between the bridge and whatever lists tools to a
 * model and calls them (bridge protocol, part d.1).
 *
 * A host adapter runs a read tool's `call` as it is. A write tool's `call` needs a
 * `WriteGrant`, which the adapter makes after its own approval channel said yes to
 * that very call.
 */
export class ToolHost extends Context.Service<
  ToolHost,
  {
    /** Which JSON Schemas the host accepts, and how arguments are checked against them. */
    readonly profile: SchemaProfile
    /**
     * Puts one tool on the host's list until the scope closes. Both ends take effect
     * before the effect returns. Fails when the name is taken or the host refuses it.
     */
    readonly register: (tool: HostTool) => Effect.Effect<void, ToolRefused, Scope.Scope>
  }
>()("effect-frontend-tools/layers/host/ToolHost") {}
