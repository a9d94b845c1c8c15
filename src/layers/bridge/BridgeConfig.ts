import { Config, Context, Effect, Layer, Option, Redacted, Schema, SchemaIssue } from "effect"

/** The longest delay that the platform's timers take, in milliseconds. */
const MAX_TIMER_MILLIS = 2_147_483_647

const integer = (minimum: number, maximum: number, fallback: number) => {
  const message = `must be an integer from ${minimum} to ${maximum}`
  return Schema.Number.annotate({ message })
    .check(Schema.isInt({ message }), Schema.isBetween({ minimum, maximum }, { message }))
    .pipe(Schema.withDecodingDefault(Effect.succeed(fallback)))
}

/** An application that the configuration admits. Its key may be any text. */
export const StaticClient = Schema.Struct({
  /** Held to the pattern of a namespace where the roster is built, as those of its file are. */
  namespace: Schema.String.pipe(Schema.annotateKey({ messageMissingKey: "is missing" })),
  key: Schema.RedactedFromValue(Schema.String).pipe(Schema.annotateKey({ messageMissingKey: "is missing" }))
})
export type StaticClient = typeof StaticClient.Type

/**
 * Every setting of a bridge with its default: the one definition that a host's
 * loader validates and that the Layers receive (bridge protocol, parts 0 and i).
 */
export const BridgeOptions = Schema.Struct({
  /** Loopback port of the listener; 0 takes any free one. */
  port: integer(0, 65_535, 31_870),
  /** How long a call waits for its result, in milliseconds. */
  callTimeoutMs: integer(1, MAX_TIMER_MILLIS, 30_000),
  /** How many tools may be mirrored at a time, over all sessions. */
  maxTools: integer(0, Number.MAX_SAFE_INTEGER, 200),
  /** Applications that need no registration. */
  staticClients: Schema.Array(StaticClient).pipe(Schema.withDecodingDefault(Effect.succeed([]))),
  /** Folder of the roster file. Absent: `$DSH_HOME`, else `~/.dsh`. */
  stateDir: Schema.optional(Schema.String.check(Schema.isNonEmpty({ message: "must not be empty" }))),
  /** Origins that may connect; absent admits every one. A client that sends no Origin is no web page. */
  allowedOrigins: Schema.optional(Schema.Array(Schema.String)),
  /**
   * Whether the `Host` header must name this machine and the port, which stops a web
   * page that rebinds its own domain to 127.0.0.1. Off for a tunnel or a proxy.
   */
  checkHost: Schema.Boolean.pipe(Schema.withDecodingDefault(Effect.succeed(true))),
  /** Largest frame that is read from a session, in bytes. Before the welcome it is `maxHelloBytes`. */
  maxFrameBytes: integer(1024, 1_073_741_824, 16 * 1024 * 1024),
  /** What may arrive before the welcome, in bytes. */
  maxHelloBytes: integer(256, 1_048_576, 16 * 1024),
  /** How long a connection may take until its hello, in milliseconds. */
  handshakeTimeoutMs: integer(1, MAX_TIMER_MILLIS, 5000),
  /** How many connections may be without a welcome at a time. */
  maxPendingHandshakes: integer(1, 65_536, 64),
  /** Unsent bytes after which an application counts as one that does not read. */
  maxBufferedBytes: integer(1024, 1_073_741_824, 32 * 1024 * 1024),
  /** The protocol's heartbeat, in milliseconds. */
  pingIntervalMs: integer(1, MAX_TIMER_MILLIS, 15_000)
})
export type BridgeOptions = typeof BridgeOptions.Type

/** The settings as a person writes them: everything is optional. */
export type BridgeOptionsInput = typeof BridgeOptions.Encoded

/** A setting is out of its range. Names the setting, never a key. */
export class BridgeConfigError extends Schema.TaggedError<BridgeConfigError>()("BridgeConfigError", {
  message: Schema.String
}) {}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const decode = (input: unknown): Effect.Effect<BridgeOptions, BridgeConfigError> =>
  Schema.decodeUnknownEffect(BridgeOptions)(input).pipe(
    Effect.mapError(
      (error) =>
        new BridgeConfigError({
          message: issuesOf(error.issue)
            .issues.map(({ message, path }) => `${(path ?? []).map(String).join(".")} ${message}`)
            .join("; ")
        })
    )
  )

const optional = <A>(config: Config.Config<A>) => config.pipe(Config.option, Config.map(Option.getOrUndefined))

const commaSeparated = (text: string) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "")

/**
 * `NAMESPACE=KEY`, as the command line and the environment spell a static client. Text
 * without `=` is taken for a key whose namespace is missing, so that no message quotes it.
 */
export const parseStaticClient = (text: string): { readonly namespace: string; readonly key: string } => {
  const at = text.indexOf("=")
  return at < 0 ? { namespace: "", key: text } : { namespace: text.slice(0, at), key: text.slice(at + 1) }
}

/**
 * The settings that the environment gives: `FRONTEND_TOOLS_PORT`,
 * `…_CALL_TIMEOUT_MS`, `…_MAX_TOOLS`, `…_STATE_DIR`, `…_MAX_FRAME_BYTES`,
 * `…_HANDSHAKE_TIMEOUT_MS`, and the comma-separated `…_STATIC_CLIENTS`
 * (`namespace=key`) and `…_ALLOWED_ORIGINS`.
 */
export const bridgeOptionsFromEnv = Config.all({
  port: optional(Config.Int("PORT")),
  callTimeoutMs: optional(Config.Int("CALL_TIMEOUT_MS")),
  maxTools: optional(Config.Int("MAX_TOOLS")),
  stateDir: optional(Config.String("STATE_DIR")),
  maxFrameBytes: optional(Config.Int("MAX_FRAME_BYTES")),
  handshakeTimeoutMs: optional(Config.Int("HANDSHAKE_TIMEOUT_MS")),
  allowedOrigins: Config.map(optional(Config.String("ALLOWED_ORIGINS")), (origins) =>
    origins === undefined ? undefined : commaSeparated(origins)
  ),
  staticClients: Config.map(optional(Config.Redacted("STATIC_CLIENTS")), (clients) =>
    clients === undefined ? undefined : commaSeparated(Redacted.value(clients)).map(parseStaticClient)
  )
}).pipe(Config.nested("FRONTEND_TOOLS"))

/** Settings of a bridge. */
export class BridgeConfig extends Context.Service<BridgeConfig, BridgeOptions>()(
  "effect-frontend-tools/layers/bridge/BridgeConfig"
) {
  /** Validates the settings given and fills in the defaults. */
  static readonly layer = (options: BridgeOptionsInput = {}): Layer.Layer<BridgeConfig, BridgeConfigError> =>
    Layer.effect(BridgeConfig, decode(options))

  /** Takes the settings from the environment; see `bridgeOptionsFromEnv`. */
  static readonly layerConfig: Layer.Layer<BridgeConfig, BridgeConfigError | Config.ConfigError> = Layer.effect(
    BridgeConfig,
    Effect.flatMap(bridgeOptionsFromEnv, decode)
  )
}
