/**
 * The frames of wire protocol 5, both directions and both phases (bridge protocol,
 * part a).
 *
 * One frame is one JSON object in one text message. Decoding never throws; what is
 * wrong comes back as a `FrameRefused` with the code and the wording of part a.3.
 * The checks run in that part's order: JSON, object, type, phase, fields. Unknown
 * fields are ignored, so that either side may add some (part a.5).
 */
import { Result, Schema, SchemaIssue } from "effect"
import { CallErrorCode, ServerErrorCode } from "./ErrorCode.ts"
import { FrameRefused } from "./FrameRefused.ts"
import { mayHoldLossyNumber, repairNumbers } from "./JsonNumbers.ts"
import { isJsonObject, type JsonObject, RemoteTool } from "./RemoteTool.ts"
import { Namespace, PublicName } from "./ToolName.ts"

export const PROTOCOL_VERSION = 5
export const SERVER_ID = "frontend-tools-bridge"

/** Before the welcome (`hello`) and after it (`session`). */
export type Phase = "hello" | "session"

// One text whether the field is missing or wrong.
const field = <S extends Schema.Top>(schema: S, message: string) =>
  schema.annotate({ message }).pipe(Schema.annotateKey({ messageMissingKey: message }))

const nonEmptyText = (message: string) =>
  Schema.String.annotate({ message })
    .check(Schema.isNonEmpty({ message }))
    .pipe(Schema.annotateKey({ messageMissingKey: message }))

const nonEmptyArray = <S extends Schema.Top>(item: S, message: string) =>
  Schema.Array(item)
    .annotate({ message })
    .check(Schema.isNonEmpty({ message }))
    .pipe(Schema.annotateKey({ messageMissingKey: message }))

/** How a value reads inside a message: its JSON, but no more of it than a log line holds. */
const show = (value: unknown): string => {
  const limit = 120
  try {
    const text = String(JSON.stringify(value))
    return text.length <= limit ? text : `${text.slice(0, limit)}…`
  } catch {
    return "a deeply nested value"
  }
}

const unsupportedVersion = (value: unknown) =>
  `protocol version ${show(value)} is not supported (expected ${PROTOCOL_VERSION})`

/** The protocol version, which is refused before anything else of the frame is looked at. */
const Protocol = Schema.Unknown.check(
  Schema.makeFilter((value) => (value === PROTOCOL_VERSION ? true : unsupportedVersion(value)))
).pipe(Schema.annotateKey({ messageMissingKey: unsupportedVersion(undefined) }))

// ---------------------------------------------------------------- extensions

/**
 * Extensions that both sides of this package know (part a.5). Their frames are only
 * sent to a peer that listed the extension.
 */
export const FEATURES = ["cancel"] as const
export type Feature = (typeof FEATURES)[number]

/**
 * Which of the extensions a received `features` field lists. Whatever else it holds
 * is ignored, and so is a field of another shape: a peer may use the name for
 * something of its own.
 */
export const knownFeatures = (features: unknown): ReadonlyArray<Feature> =>
  Array.isArray(features) ? FEATURES.filter((feature) => features.includes(feature)) : []

// ---------------------------------------------------------------- client to server

export const HelloFrame = Schema.Struct({
  type: Schema.Literal("hello"),
  protocol: Protocol,
  key: field(Schema.String, "hello.key must be a string"),
  /** Extensions that the application knows; read it with `knownFeatures`. */
  features: Schema.optionalKey(Schema.Unknown)
})

export const RegisterFrame = Schema.Struct({
  type: Schema.Literal("register"),
  tools: nonEmptyArray(RemoteTool, "register.tools must be a non-empty array")
})

const NAMES = "unregister.names must be a non-empty array of non-empty strings"

/** The names need not match the pattern of raw names: unknown ones are left out of the answer. */
export const UnregisterFrame = Schema.Struct({
  type: Schema.Literal("unregister"),
  names: nonEmptyArray(nonEmptyText(NAMES), NAMES)
})

const callId = nonEmptyText("callResult.callId must be a non-empty string")

const OUTCOME = "callResult.ok must be a boolean"

export const CallSucceededFrame = Schema.Struct({
  type: Schema.Literal("callResult"),
  callId,
  ok: field(Schema.Literal(true), OUTCOME),
  /** Absent when the tool returned nothing. */
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.Never.annotate({ message: "callResult.error must be absent when ok is true" }))
})

const CALL_FAILURE = "failed callResult must carry error { code, message }"

export const CallFailedFrame = Schema.Struct({
  type: Schema.Literal("callResult"),
  callId,
  ok: field(Schema.Literal(false), OUTCOME),
  error: field(
    Schema.Struct({ code: field(Schema.String, CALL_FAILURE), message: field(Schema.String, CALL_FAILURE) }),
    CALL_FAILURE
  )
})

export const CallResultFrame = Schema.Union([CallSucceededFrame, CallFailedFrame]).annotate({ message: OUTCOME })
export type CallResultFrame = typeof CallResultFrame.Type

export const PongFrame = Schema.Struct({ type: Schema.Literal("pong") })

/** What an application sends. */
export const ClientFrame = Schema.Union([HelloFrame, RegisterFrame, UnregisterFrame, CallResultFrame, PongFrame])
export type ClientFrame = typeof ClientFrame.Type

// ---------------------------------------------------------------- server to client

export const WelcomeFrame = Schema.Struct({
  type: Schema.Literal("welcome"),
  protocol: Protocol,
  server: field(Schema.String, "welcome.server must be a string"),
  namespace: field(Namespace, "welcome.namespace must be a namespace"),
  /** Extensions that both sides know; only in the answer to a hello that listed some. */
  features: Schema.optionalKey(Schema.Unknown),
  /** `{ maxFrameBytes }`: the largest frame that the bridge reads. Comes with `features`. */
  limits: Schema.optionalKey(Schema.Unknown)
})
export type WelcomeFrame = typeof WelcomeFrame.Type

/** The largest frame that a received `limits` field allows, in bytes. */
export const frameLimit = (limits: unknown): number | undefined =>
  isJsonObject(limits) && typeof limits.maxFrameBytes === "number" && limits.maxFrameBytes > 0
    ? limits.maxFrameBytes
    : undefined

export const RegisteredFrame = Schema.Struct({
  type: Schema.Literal("registered"),
  /** Public names of the batch, in its order. */
  names: field(Schema.Array(PublicName), "registered.names must be an array of public names")
})

export const UnregisteredFrame = Schema.Struct({
  type: Schema.Literal("unregistered"),
  /** Raw names that were really removed, in the order of the request. */
  names: field(Schema.Array(Schema.String), "unregistered.names must be an array of strings")
})

export const CallFrame = Schema.Struct({
  type: Schema.Literal("call"),
  callId: nonEmptyText("call.callId must be a non-empty string"),
  /** The raw name: an application never sees the public one. */
  name: nonEmptyText("call.name must be a non-empty string"),
  args: Schema.optionalKey(Schema.Unknown)
})

export type CallFrame = typeof CallFrame.Type

/** Why nobody waits for a call any more. */
export type CancelReason = "aborted" | "timeout" | "revoked"

/** Nobody waits for this call any more. Only sent where `cancel` was agreed on. */
export const CancelFrame = Schema.Struct({
  type: Schema.Literal("cancel"),
  callId: nonEmptyText("cancel.callId must be a non-empty string"),
  /** A `CancelReason`, or one that a newer server added. */
  reason: field(Schema.String, "cancel.reason must be a string")
})

export const PingFrame = Schema.Struct({ type: Schema.Literal("ping") })

export const ErrorFrame = Schema.Struct({
  type: Schema.Literal("error"),
  /** One of `ServerErrorCode`, or one that a newer server added. */
  code: field(Schema.String, "error.code must be a string"),
  message: field(Schema.String, "error.message must be a string")
})

/** What the bridge sends. */
export const ServerFrame = Schema.Union([
  WelcomeFrame,
  RegisteredFrame,
  UnregisteredFrame,
  CallFrame,
  CancelFrame,
  PingFrame,
  ErrorFrame
])
export type ServerFrame = typeof ServerFrame.Type

// ---------------------------------------------------------------- encoding

/**
 * A client frame as the text to send. Throws what `JSON.stringify` throws when the
 * result of a call is no JSON value.
 */
export const encodeClientFrame = (frame: ClientFrame): string => JSON.stringify(frame)

/**
 * A server frame as the text to send. Throws what `JSON.stringify` throws when the
 * arguments of a call are no JSON value.
 */
export const encodeServerFrame = (frame: ServerFrame): string => JSON.stringify(frame)

// ---------------------------------------------------------------- decoding

interface FrameKind<F> {
  readonly phase: Phase | "any"
  readonly decode: (input: JsonObject) => Result.Result<F, Schema.SchemaError>
}

const kind = <F>(phase: Phase | "any", schema: Schema.ConstraintDecoder<F>): FrameKind<F> => ({
  phase,
  decode: Schema.decodeUnknownResult(schema)
})

// A Map and not an object: `type` is hostile, and may read "constructor".
const clientFrames = new Map<unknown, FrameKind<ClientFrame>>([
  ["hello", kind("hello", HelloFrame)],
  ["register", kind("session", RegisterFrame)],
  ["unregister", kind("session", UnregisterFrame)],
  ["callResult", kind("session", CallResultFrame)],
  ["pong", kind("session", PongFrame)]
])

const serverFrames = new Map<unknown, FrameKind<ServerFrame>>([
  ["welcome", kind("hello", WelcomeFrame)],
  ["registered", kind("session", RegisteredFrame)],
  ["unregistered", kind("session", UnregisteredFrame)],
  ["call", kind("session", CallFrame)],
  ["cancel", kind("session", CancelFrame)],
  ["ping", kind("session", PingFrame)],
  ["error", kind("any", ErrorFrame)]
])

const invalidMessage = (message: string, path: ReadonlyArray<string | number> = []) =>
  new FrameRefused({ code: "invalid_message", message, path, fatal: true })

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** The first violation, in the wording of the specification. */
const explain = (input: JsonObject, error: Schema.SchemaError): FrameRefused => {
  const [first] = issuesOf(error.issue).issues
  const path = (first?.path ?? []).flatMap((segment) =>
    typeof segment === "string" || typeof segment === "number" ? [segment] : []
  )
  const message = first?.message ?? "frame is malformed"
  const [root, index, toolField] = path
  if (input.type !== "register" || root !== "tools" || typeof index !== "number") {
    return invalidMessage(message, path)
  }
  const tool: unknown = Array.isArray(input.tools) ? input.tools[index] : undefined
  const name = isJsonObject(tool) ? tool.name : undefined
  const subject = toolField === undefined ? "" : toolField === "name" ? "tool name " : "tool "
  return new FrameRefused({
    code: "invalid_tool",
    message: subject === "" ? message : `${subject}${show(name)} ${message}`,
    path,
    fatal: false
  })
}

const decodeWith =
  <F>(frames: ReadonlyMap<unknown, FrameKind<F>>) =>
  (text: string, phase: Phase): Result.Result<F, FrameRefused> => {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      return Result.fail(invalidMessage(`frame is not valid JSON: ${String(error)}`))
    }
    if (!isJsonObject(value)) return Result.fail(invalidMessage("frame must be a JSON object"))
    const input = value
    const type = input.type
    const found = frames.get(type)
    if (found === undefined) return Result.fail(invalidMessage(`unknown message type ${show(type)}`, ["type"]))
    if (found.phase !== phase && found.phase !== "any") {
      return Result.fail(
        invalidMessage(
          found.phase === "hello"
            ? `${type} is only valid as the first frame`
            : `${type} requires a completed handshake`,
          ["type"]
        )
      )
    }
    return Result.mapError(found.decode(input), (error) => explain(input, error))
  }

const decodeClient = decodeWith(clientFrames)

/** Decodes one text message of an application. */
export const decodeClientFrame = (text: string, phase: Phase): Result.Result<ClientFrame, FrameRefused> => {
  const decoded = decodeClient(text, phase)
  if (Result.isFailure(decoded) || decoded.success.type !== "callResult" || !mayHoldLossyNumber(text)) return decoded
  const frame = decoded.success
  return repairNumbers(frame)
    ? decoded
    : // The application's fault and not the frame's: it ends the call, not the session.
      Result.succeed({
        type: "callResult",
        callId: frame.callId,
        ok: false,
        error: { code: "internal", message: "the result holds a number beyond the range of JSON" }
      })
}

/** Decodes one text message of a bridge. */
export const decodeServerFrame: (text: string, phase: Phase) => Result.Result<ServerFrame, FrameRefused> =
  decodeWith(serverFrames)

const isCallErrorCode = Schema.is(CallErrorCode)

/** A code as an application sent it: one that the protocol does not know is `internal`. */
export const toCallErrorCode = (code: string): CallErrorCode => (isCallErrorCode(code) ? code : "internal")

/** Whether a received error code is one that this version knows. */
export const isServerErrorCode = Schema.is(ServerErrorCode)
