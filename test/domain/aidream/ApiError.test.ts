import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { ApiErrorBody, apiErrorBody, readApiError, resumeRefusal } from "../../../src/domain/aidream/ApiError.ts"

const read = (body: unknown, status = 409) =>
  readApiError(status, typeof body === "string" ? body : JSON.stringify(body))

describe("ApiError", () => {
  it("F-04 finds the code in every wrapper", () => {
    const wrappers: ReadonlyArray<readonly [string, unknown, string | undefined]> = [
      [
        "E1",
        { error: "resume_conflict", message: "resume_conflict: busy", details: { code: "resume_conflict" } },
        "resume_conflict"
      ],
      ["E2", { error: "conflict", message: "resume_conflict: busy", details: {} }, "resume_conflict"],
      ["E2 with details", { error: "conflict", message: "busy", details: { code: "not_resumable" } }, "not_resumable"],
      ["E3", { detail: { code: "resume_conflict", message: "busy" } }, "resume_conflict"],
      ["E4", { detail: "resume_conflict: busy" }, "resume_conflict"],
      ["E4 without code", { detail: "Something is: off" }, undefined],
      ["E4 plain", { detail: "busy" }, undefined],
      ["E5", { code: "resume_conflict", message: "busy" }, "resume_conflict"],
      ["E6", { detail: [{ loc: ["body", "x"], msg: "field required", type: "missing" }] }, undefined],
      ["E7", { error: { type: "resume_conflict", message: "busy" } }, "resume_conflict"],
      ["E7 code", { error: { code: "resume_conflict", type: "x", message: "busy" } }, "resume_conflict"],
      ["E8", "upstream said resume_conflict", "resume_conflict"],
      ["E8 ambiguous", "resume_conflict or not_resumable", undefined],
      ["E8 html", "<html>Bad gateway</html>", undefined],
      ["generic only", { error: "conflict", message: "conflict: busy" }, undefined],
      ["nothing", {}, undefined]
    ]
    for (const [name, body, code] of wrappers) assert.strictEqual(read(body).code, code, name)
  })

  it("prefers details over detail over error over code", () => {
    const body = { details: { code: "a" }, detail: { code: "b" }, error: "c", code: "d", message: "e: x" }
    assert.strictEqual(read(body).code, "a")
    assert.strictEqual(read({ ...body, details: {} }).code, "b")
    assert.strictEqual(read({ ...body, details: {}, detail: {} }).code, "c")
    assert.strictEqual(read({ ...body, details: {}, detail: {}, error: "error" }).code, "d")
    assert.strictEqual(read({ message: "e: x" }).code, "e")
  })

  it("reads side fields from details, then detail, then the top", () => {
    assert.deepInclude(read({ details: { code: "resume_conflict", status: "pending" }, status: "x" }), {
      retryable: true,
      runStatus: "pending"
    })
    assert.deepStrictEqual(read({ detail: { outstanding_call_ids: ["a", 1, "b"] } }).outstandingCallIds, ["a", "b"])
    assert.isFalse(read({ code: "resume_conflict", retryable: false }).retryable)
    assert.isFalse(read({ code: "not_resumable" }).retryable)
  })

  it("separates the person's text from the developer's", () => {
    assert.deepInclude(read({ error: "x_y", message: "x_y: broken", user_message: "Try later" }), {
      message: "broken",
      userMessage: "Try later"
    })
    assert.strictEqual(read({ error: { message: "m", user_visible_message: "u" } }).userMessage, "u")
    assert.strictEqual(
      read({ detail: [{ loc: ["body", "results"], msg: "too short" }] }, 422).message,
      "body.results: too short"
    )
    assert.strictEqual(read("", 502).message, "HTTP 502")
  })

  it("writes a body that its reader and its schema understand", () => {
    const body = apiErrorBody("outstanding_delegated_calls", "2 left", {
      details: { outstanding_call_ids: ["a", "b"], retryable: false },
      requestId: "r"
    })
    assert.deepStrictEqual(Schema.decodeUnknownSync(ApiErrorBody)(JSON.parse(JSON.stringify(body))), body)
    assert.deepInclude(read(body), {
      code: "outstanding_delegated_calls",
      message: "2 left",
      outstandingCallIds: ["a", "b"],
      retryable: false
    })
  })

  it("classifies refused resumes", () => {
    const classOf = (status: number, code: string | undefined) =>
      resumeRefusal(read(code === undefined ? {} : { code }, status))
    assert.strictEqual(classOf(409, "resume_conflict"), "conflict")
    assert.strictEqual(classOf(409, "outstanding_delegated_calls"), "outstanding")
    assert.strictEqual(classOf(409, "not_resumable"), "settled")
    assert.strictEqual(classOf(409, undefined), "outstanding")
    assert.strictEqual(classOf(409, "run_in_progress"), "outstanding")
    assert.strictEqual(classOf(404, "user_request_not_found"), "terminal")
    assert.strictEqual(classOf(422, "tool_merge_error"), "terminal")
    assert.isUndefined(classOf(503, undefined))
    assert.isUndefined(classOf(429, undefined))
  })
})
