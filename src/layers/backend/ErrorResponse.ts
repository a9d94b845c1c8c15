import { Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { apiErrorBody } from "../../domain/aidream/ApiError.ts"
import type { LedgerFailure } from "./Ledger.ts"
import { Problem, type Refusal } from "./Refusal.ts"

const isProblems = Schema.is(Schema.Array(Problem))

/** A refusal on the wire: the envelope every older reader knows, and the list of field problems beside it. */
export const refusalResponse = (refusal: Refusal): HttpServerResponse.HttpServerResponse => {
  const { problems } = refusal.details
  const detail = isProblems(problems)
    ? {
        detail: problems.map(({ code, message, path }) => ({
          loc: ["body", ...(path ?? [])],
          msg: message,
          type: code
        }))
      }
    : {}
  return HttpServerResponse.jsonUnsafe(
    { ...apiErrorBody(refusal.code, refusal.text, { details: refusal.details }), ...detail },
    { status: refusal.status, ...(refusal.status === 401 ? { headers: { "www-authenticate": "Bearer" } } : {}) }
  )
}

/** A failure of the store: worth another try, and nobody's business how it came about. */
export const failureResponse = (_failure: LedgerFailure): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    apiErrorBody("persistence_unavailable", "the server could not write this down", { details: { retryable: true } }),
    { status: 503 }
  )
