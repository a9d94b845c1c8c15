/** The flags of every command that runs a bridge, and the bridge they describe. */
import { Config, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Flag } from "effect/cli"
import { BridgeConfig, bridgeOptionsFromEnv, parseStaticClient } from "../layers/bridge/BridgeConfig.ts"

/** The help of a flag names the variable that says the same. */
const help = (description: string, variable: string) => `${description} [FRONTEND_TOOLS_${variable}]`

const optionalText = (name: string, description: string, variable: string) =>
  Flag.String(name).pipe(Flag.withDescription(help(description, variable)), Flag.optional)

const optionalNumber = (name: string, description: string, variable: string) =>
  Flag.Int(name).pipe(Flag.withDescription(help(description, variable)), Flag.optional)

/** Each has a twin in the environment, which it overrides. */
export const bridgeFlags = {
  port: optionalNumber("port", "Loopback port of the bridge; 0 takes any free one (default 31870)", "PORT"),
  stateDir: optionalText("state-dir", "Folder of the client roster (default $DSH_HOME, else ~/.dsh)", "STATE_DIR"),
  callTimeoutMs: optionalNumber(
    "call-timeout-ms",
    "How long a call waits for its result in milliseconds (default 30000)",
    "CALL_TIMEOUT_MS"
  ),
  maxTools: optionalNumber("max-tools", "How many tools may be mirrored at a time (default 200)", "MAX_TOOLS"),
  staticClients: Flag.Redacted("static-client").pipe(
    Flag.withMetavar("NAMESPACE=KEY"),
    Flag.withDescription(
      help(
        "An application that needs no registration; may be repeated. Other users of the machine can read a command line: the variable, with commas between, keeps the key out of it",
        "STATIC_CLIENTS"
      )
    ),
    Flag.atLeast(0)
  ),
  allowedOrigins: Flag.String("allow-origin").pipe(
    Flag.withDescription(help("Web origin that may connect; may be repeated (default: every one)", "ALLOWED_ORIGINS")),
    Flag.atLeast(0)
  )
}

/** The values of `bridgeFlags`. */
export interface BridgeFlags {
  readonly port: Option.Option<number>
  readonly stateDir: Option.Option<string>
  readonly callTimeoutMs: Option.Option<number>
  readonly maxTools: Option.Option<number>
  readonly staticClients: ReadonlyArray<Redacted.Redacted>
  readonly allowedOrigins: ReadonlyArray<string>
}

const given = <A>(flag: Option.Option<A>, fallback: A | undefined): A | undefined =>
  Option.getOrElse(flag, () => fallback)

const givenAny = <A>(flags: ReadonlyArray<A>, fallback: ReadonlyArray<A> | undefined) =>
  flags.length > 0 ? flags : fallback

/** The bridge's settings: a flag, else the environment, else the default. */
export const bridgeConfig = (flags: BridgeFlags) =>
  Layer.unwrap(
    Effect.map(bridgeOptionsFromEnv, (env) =>
      BridgeConfig.layer({
        ...env,
        port: given(flags.port, env.port),
        stateDir: given(flags.stateDir, env.stateDir),
        callTimeoutMs: given(flags.callTimeoutMs, env.callTimeoutMs),
        maxTools: given(flags.maxTools, env.maxTools),
        staticClients: givenAny(
          flags.staticClients.map((client) => parseStaticClient(Redacted.value(client))),
          env.staticClients
        ),
        allowedOrigins: givenAny(flags.allowedOrigins, env.allowedOrigins)
      })
    )
  )

// In the spelling of the flag.
const LogLevel = Schema.Literals([
  "all",
  "trace",
  "debug",
  "info",
  "warn",
  "warning",
  "error",
  "fatal",
  "none"
]).transform(["All", "Trace", "Debug", "Info", "Warn", "Warn", "Error", "Fatal", "None"])

/** `FRONTEND_TOOLS_LOG_LEVEL`, the twin of `--log-level`. */
export const logLevelFromEnv = Config.schema(LogLevel, ["FRONTEND_TOOLS", "LOG_LEVEL"]).pipe(Config.option)
