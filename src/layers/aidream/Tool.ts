import { type Duration, Effect, Schema } from "effect"
import { isJsonObject, type JsonObject } from "../../domain/aidream/Absent.ts"
import type { CallId, ConversationId } from "../../domain/aidream/Ids.ts"
import type { PermissionMode, Tier } from "../../domain/aidream/Tier.ts"
import { jsonSchemaOf } from "../internal/jsonSchemaOf.ts"

/** A tool said no. Its message goes to the model as it is. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String,
  /** A structured output beside the message, for instance `{ ok: false, reason, message }`. */
  output: Schema.optionalKey(Schema.Unknown)
}) {}

/** The arguments of a call do not fit the tool. */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  problem: Schema.String
}) {
  override get message() {
    return `The arguments do not fit: ${this.problem}`
  }
}

/** What a running tool knows about its call. */
export interface ToolCall {
  readonly conversationId: ConversationId
  readonly callId: CallId
  readonly mode: PermissionMode
  readonly pinnedTab: number | undefined
}

/** A call whose arguments were accepted. */
export interface PreparedCall {
  /** The tier of this very call. */
  readonly tier: Tier
  /** Tabs it acts on beside the pinned one. */
  readonly tabs: ReadonlyArray<number>
  /** The host it goes to, when it names one: what a remembered approval trusts. */
  readonly host: string | undefined
  readonly run: (call: ToolCall) => Effect.Effect<unknown, unknown>
}

/** A tool as the dispatcher sees it, wherever it came from. */
export interface LibraryTool {
  /** Key of the table: a local name, without namespace. */
  readonly name: string
  readonly description: string
  readonly category: string | undefined
  readonly tier: Tier
  /** Only callers that the local policy knows as admins may run it. */
  readonly adminOnly: boolean
  /** Platforms it works on; undefined for all. */
  readonly platforms: ReadonlyArray<string> | undefined
  /** Optional permissions it needs. */
  readonly permissions: ReadonlyArray<string>
  /** When given, the tool is announced to the backend with this schema in every request. */
  readonly announce: JsonObject | undefined
  /** How long it may run; undefined for no limit. */
  readonly timeout: Duration.Input | undefined
  /** Checks the arguments. `args` is `{}` when the call had none. */
  readonly prepare: (args: unknown) => Effect.Effect<PreparedCall, InvalidArguments>
}

/** Options of `makeTool`. */
export interface ToolOptions<A, E> {
  readonly name: string
  readonly description?: string | undefined
  readonly category?: string | undefined
  /** Default `action`. */
  readonly tier?: Tier | undefined
  /** The tier of one call, when it depends on the arguments. */
  readonly tierFor?: ((args: A) => Tier) | undefined
  readonly adminOnly?: boolean | undefined
  readonly platforms?: ReadonlyArray<string> | undefined
  readonly permissions?: ReadonlyArray<string> | undefined
  /** Announce the tool inline: for tools the backend's registry does not have. Default false. */
  readonly announce?: boolean | undefined
  readonly timeout?: Duration.Input | undefined
  /** What the arguments must be. */
  readonly parameters: Schema.ConstraintDecoder<A>
  /** Runs the tool. A failure becomes an error result with its message. */
  readonly run: (args: A, call: ToolCall) => Effect.Effect<unknown, E>
}

/** Makes a local tool of a schema and a handler. */
export const makeTool = <A, E>(options: ToolOptions<A, E>): LibraryTool => {
  const decode = Schema.decodeUnknownEffect(options.parameters)
  const tier = options.tier ?? "action"
  return {
    name: options.name,
    description: options.description ?? "",
    category: options.category,
    tier,
    adminOnly: options.adminOnly ?? false,
    platforms: options.platforms,
    permissions: options.permissions ?? [],
    announce: options.announce === true ? jsonSchemaOf(options.parameters) : undefined,
    timeout: options.timeout,
    prepare: (args) =>
      decode(args).pipe(
        Effect.mapError((error) => new InvalidArguments({ problem: error.message })),
        Effect.map((decoded) => ({
          tier: options.tierFor?.(decoded) ?? tier,
          ...targetsOf(args),
          run: (call) => options.run(decoded, call)
        }))
      )
  }
}

const isTab = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value)

/** Which tabs and host the arguments of a call name, by the names every tool uses for them. */
export const targetsOf = (args: unknown): Pick<PreparedCall, "tabs" | "host"> => {
  if (!isJsonObject(args)) return { tabs: [], host: undefined }
  const several = Array.isArray(args.tab_ids) ? args.tab_ids.filter(isTab) : []
  return {
    tabs: isTab(args.tab_id) ? [args.tab_id, ...several] : several,
    host: typeof args.url === "string" ? hostOf(args.url) : undefined
  }
}

const hostOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).host || undefined : undefined)
