import { ByteSize, Effect, Result, Schema, SchemaIssue } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { ToolResultsRequest } from "../../domain/aidream/ToolResults.ts"
import { ContinueRequest, ResumeRequest, StartRequest } from "../../domain/aidream/TurnRequest.ts"
import { invalid, type Problem, type Refusal, tooLarge } from "./Refusal.ts"

const issues = SchemaIssue.makeFormatterStandardSchemaV1()

/** Reads the JSON body of a request and checks it; every problem is listed. */
const reader = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
  return Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    maxBytes: number
  ): Effect.fn.Return<S["Type"], Refusal> {
    const text = yield* request.text.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
      Effect.mapError(({ reason }) =>
        reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
          ? tooLarge(maxBytes)
          : invalid([{ code: "validation_error", message: "the body could not be read" }])
      )
    )
    const parsed = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => invalid([{ code: "validation_error", message: "the body is not JSON" }])
    })
    const decoded = decode(parsed)
    if (Result.isSuccess(decoded)) return decoded.success
    const [first, ...rest] = issues(decoded.failure.issue).issues.map(
      ({ message, path }): Problem => ({
        code: "validation_error",
        message: [path?.map(String).join("."), message].filter(Boolean).join(": "),
        path: (path ?? []).map((key) => (typeof key === "number" ? key : String(key)))
      })
    )
    return yield* invalid(first === undefined ? [{ code: "validation_error", message: "invalid" }] : [first, ...rest])
  })
}

export const startBody = reader(StartRequest)
export const continueBody = reader(ContinueRequest)
export const resumeBody = reader(ResumeRequest)
export const resultsBody = reader(ToolResultsRequest)
