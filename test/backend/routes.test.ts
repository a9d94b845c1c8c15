import http from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { Authentication } from "../../src/layers/backend/Authentication.ts"
import * as LoopbackServer from "../../src/layers/backend/LoopbackServer.ts"
import * as ScriptedModel from "../../src/layers/backend/ScriptedModel.ts"
import {
  accepted,
  answer,
  browserClient,
  inline,
  make,
  pending,
  refusal,
  rest,
  start,
  textOf,
  uuid
} from "./support/backend.ts"

const tools = [inline("look")]
const delegating = {
  model: ({ step }: { readonly step: number }) =>
    step === 0 ? { calls: [{ tool: "look", id: "c0" }] } : { text: "ok" }
}
const bob = { authorization: "Bearer bob" }

describe("routes", () => {
  it.effect("serve both spellings of everything, with and without /api", () =>
    Effect.gen(function* () {
      const backend = yield* make(delegating)
      for (const prefix of ["", "/api"]) {
        for (const agents of ["agent", "agents"]) {
          for (const conversations of ["conversation", "conversations"]) {
            const id = uuid()
            const base = `${prefix}/ai/${conversations}/${id}`
            const started = yield* backend.post(`${prefix}/ai/${agents}/a%2Fb`, {
              conversation_id: id,
              is_new: true,
              user_input: "x",
              tools
            })
            assert.strictEqual(started.status, 200)
            yield* rest(started)
            assert.strictEqual(pending(yield* backend.get(`${base}/pending_calls`)).length, 1)
            const posted = yield* backend.post(`${base}/tool_results`, {
              results: [{ call_id: "c0", tool_name: "look" }]
            })
            assert.isTrue(accepted(posted).continuation_needed)
            assert.strictEqual(textOf(yield* rest(yield* backend.post(`${base}/resume`, { tools }))), "ok")
            assert.strictEqual((yield* backend.post(base, { user_input: "y" })).status, 200)
            const cancelled = yield* backend.post(`${prefix}/ai/cancel/${started.headers["x-request-id"]}`, undefined)
            assert.deepStrictEqual(JSON.parse(cancelled.text), { status: "completed" })
            assert.strictEqual((yield* backend.get(`${prefix}/ai/user/pending_calls`)).status, 200)
            assert.strictEqual((yield* backend.get(`${prefix}/desktop-instances`)).text, "[]")
          }
        }
      }
    })
  )

  it.effect("streams carry their headers", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      const id = uuid()
      const { headers } = yield* start(backend, id)
      assert.strictEqual(headers["content-type"], "application/x-ndjson")
      assert.strictEqual(headers["x-conversation-id"], id)
      assert.match(headers["x-request-id"]!, /^[0-9a-f-]{36}$/)
    })
  )

  it.effect("mint a conversation when none is named; the default of is_new follows", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      const minted = yield* backend.post("/ai/agent/a", { user_input: "x" })
      assert.match(minted.headers["x-conversation-id"]!, /^[0-9a-f-]{36}$/)
      yield* rest(minted)
      const again = yield* backend.post("/ai/agent/a", {
        conversation_id: minted.headers["x-conversation-id"],
        user_input: "y"
      })
      assert.strictEqual(again.status, 200)
      yield* rest(again)
      assert.strictEqual(
        refusal(yield* backend.post("/ai/agent/a", { conversation_id: uuid(), user_input: "y" })).code,
        "conversation_not_found"
      )
      const taken = refusal(
        yield* backend.post("/ai/agent/a", { conversation_id: minted.headers["x-conversation-id"], is_new: true })
      )
      assert.deepStrictEqual([taken.status, taken.code], [409, "conversation_exists"])
    })
  )

  it.effect("null and absent are the same, unknown fields are ignored", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      const opened = yield* backend.post("/ai/agent/a", {
        user_input: "x",
        conversation_id: null,
        is_new: null,
        client: null,
        tools: null,
        tools_replace: null,
        user: null,
        store: null,
        snapshot: { any: "thing" }
      })
      assert.strictEqual(opened.status, 200)
    })
  )
})

describe("authentication", () => {
  it.effect("refuses requests that say nothing about who sends them", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      for (const who of [{}, { authorization: "Basic x" }, { authorization: "Bearer " }, { "x-fingerprint-id": " " }]) {
        const refused = refusal(yield* backend.post("/ai/agent/a", { user_input: "x" }, who))
        assert.deepStrictEqual([refused.status, refused.code], [401, "unauthenticated"])
      }
      assert.deepStrictEqual(yield* backend.sql`SELECT * FROM conversations`, [])
    })
  )

  it.effect("a bearer wins over a fingerprint, and a bad one is not downgraded to a guest", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        authentication: Authentication.layer({
          verify: (token) =>
            Effect.succeed(Redacted.value(token) === "good" ? Option.some({ id: "ada" }) : Option.none())
        })
      })
      const post = (who: Readonly<Record<string, string>>) => backend.post("/ai/agent/a", { user_input: "x" }, who)
      assert.strictEqual((yield* post({ authorization: "bearer good", "x-fingerprint-id": "f" })).status, 200)
      assert.strictEqual((yield* post({ authorization: "Bearer bad", "x-fingerprint-id": "f" })).status, 401)
      assert.strictEqual((yield* post({ "x-fingerprint-id": "f" })).status, 200)
      const owners = yield* backend.sql`SELECT owner FROM conversations ORDER BY owner`
      assert.strictEqual(owners[1]?.owner, "user:ada")
      // What identifies a guest is a secret: the database holds a digest.
      assert.match(String(owners[0]?.owner), /^guest:[0-9a-f]{32}$/)
    })
  )

  it.effect("users-only capabilities refuse guests", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      const client = {
        capabilities: ["desktop-native"],
        state: {
          "desktop-native": { platform: "windows", engine_version: "1", instance_id: "i", tunnel_state: "none" }
        }
      }
      const guest = refusal(
        yield* backend.post("/ai/agent/a", { user_input: "x", client }, { "x-fingerprint-id": "f" })
      )
      assert.deepStrictEqual([guest.status, guest.code], [422, "client_capability_resolution_failed"])
      assert.strictEqual((yield* backend.post("/ai/agent/a", { user_input: "x", client })).status, 200)
    })
  )

  it.effect("nothing of another caller's is there", () =>
    Effect.gen(function* () {
      const backend = yield* make(delegating)
      const id = uuid()
      const opened = yield* start(backend, id, { tools })
      yield* rest(opened)
      const attempts = [
        backend.post(`/ai/conversations/${id}`, { user_input: "x" }, bob),
        backend.post(`/ai/conversations/${id}/resume`, {}, bob),
        backend.post(`/ai/conversations/${id}/tool_results`, { results: [{ call_id: "c0", tool_name: "x" }] }, bob),
        backend.get(`/ai/conversations/${id}/pending_calls`, bob),
        backend.post("/ai/agent/a", { conversation_id: id, is_new: false, user_input: "x" }, bob),
        backend.post(`/ai/cancel/${opened.headers["x-request-id"]}`, undefined, bob)
      ]
      for (const attempt of attempts) assert.strictEqual(refusal(yield* attempt).status, 404)
      assert.deepStrictEqual(pending(yield* backend.get("/ai/user/pending_calls", bob)), [])
      assert.strictEqual(pending(yield* backend.get("/ai/user/pending_calls")).length, 1)
    })
  )
})

describe("bad input", () => {
  const nothingWritten = (backend: Effect.Success<ReturnType<typeof make>>) =>
    Effect.map(backend.sql`SELECT * FROM conversations`, (rows) => assert.deepStrictEqual(rows, []))

  it.effect("422 lists every problem of a body, in both envelopes", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      const bad = yield* backend.post("/ai/agent/a", {
        user_input: 5,
        max_iterations: 0,
        tools: [{ kind: "inline", name: "no spaces" }]
      })
      const read = refusal(bad)
      assert.deepStrictEqual([read.status, read.code], [422, "validation_error"])
      const body = JSON.parse(bad.text)
      assert.deepStrictEqual(
        body.detail.map((each: { readonly loc: ReadonlyArray<unknown> }) => each.loc),
        [
          ["body", "tools", 0, "name"],
          ["body", "user_input"],
          ["body", "max_iterations"]
        ]
      )
      yield* nothingWritten(backend)
    })
  )

  it.effect("422 lists every problem of envelope and tools together", () =>
    Effect.gen(function* () {
      const backend = yield* make({})
      const bad = refusal(
        yield* backend.post("/ai/agent/a", {
          conversation_id: "not-a-uuid",
          is_new: true,
          client: {
            capabilities: ["browser-dom", "nope", "nope"],
            state: {
              "browser-dom": {
                surface: "moon",
                is_admin: "yes",
                permission_mode: "ask",
                desktop_bridge: "none",
                onbox_ai_available: true
              },
              undeclared: { anything: 1 }
            }
          },
          tools: [
            { kind: "registered", name: "missing" },
            { kind: "agent", agent_id: "x" }
          ]
        })
      )
      assert.deepStrictEqual(
        JSON.parse(JSON.stringify(bad.details.problems)).map(({ code }: { readonly code: string }) => code),
        [
          "invalid_uuid",
          "client_capability_resolution_failed",
          "client_capability_resolution_failed",
          "client_capability_resolution_failed",
          "tool_not_found",
          "tool_merge_error"
        ]
      )
      yield* nothingWritten(backend)
    })
  )

  it.effect("F-22: keys the server does not know survive in the state", () =>
    Effect.gen(function* () {
      const { Capabilities } = yield* Effect.promise(() => import("../../src/layers/backend/Capabilities.ts"))
      const resolved = yield* Capabilities.use((capabilities) =>
        Effect.sync(() =>
          capabilities.resolve(
            { ...browserClient({ new_flag: { deep: true } }), mcp: [] },
            { owner: "user:a", kind: "user" }
          )
        )
      ).pipe(Effect.provide(Capabilities.layer()))
      assert.deepStrictEqual(resolved.problems, [])
      assert.deepStrictEqual(resolved.client.state.get("browser-dom")?.new_flag, { deep: true })
    })
  )

  it.effect("404 for agents and routes that are not there, 413 for bodies that are too big", () =>
    Effect.gen(function* () {
      const backend = yield* make({ agents: { known: { instructions: "", tools: [] } }, config: { maxBodyBytes: 200 } })
      const missing = refusal(yield* backend.post("/ai/agent/unknown", { user_input: "x" }))
      assert.deepStrictEqual([missing.status, missing.code], [404, "agent_not_found"])
      const big = refusal(yield* backend.post("/ai/agent/known", { user_input: "x".repeat(300) }))
      assert.deepStrictEqual([big.status, big.code], [413, "body_too_large"])
      assert.strictEqual(refusal(yield* backend.post("/ai/agent/known", "{not json")).status, 422)
      yield* nothingWritten(backend)
    })
  )

  it.effect("results need a call, and an answer to at least one known call", () =>
    Effect.gen(function* () {
      const backend = yield* make(delegating)
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools }))
      assert.strictEqual((yield* answer(backend, id, [])).status, 422)
      const unknown = refusal(yield* answer(backend, id, [{ call_id: "a" }, { call_id: "b" }]))
      assert.deepStrictEqual([unknown.status, unknown.code], [404, "tool_calls_not_found"])
      assert.deepStrictEqual(unknown.details.not_found, ["a", "b"])
      const partly = accepted(yield* answer(backend, id, [{ call_id: "a" }, { call_id: "c0" }]))
      assert.deepStrictEqual([partly.resolved, partly.not_found], [["c0"], ["a"]])
    })
  )
})

describe("the loopback server", () => {
  it.live("answers over a real socket, to loopback names only", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(
        LoopbackServer.layer({
          port: 0,
          database: { filename: ":memory:" },
          model: ScriptedModel.layer(() => ({ text: "hello there" }))
        })
      )
      const { address } = yield* HttpServer.HttpServer.pipe(Effect.provide(context))
      const port = "port" in address ? address.port : 0
      const url = `http://127.0.0.1:${port}/ai/agent/a`
      const init = { method: "POST", body: JSON.stringify({ user_input: "x" }), headers: { "x-fingerprint-id": "f" } }
      const text = yield* Effect.promise(() => fetch(url, init).then((response) => response.text()))
      assert.include(text, '{"e":"c","t":"hello "}\n{"e":"c","t":"there"}\n')
      assert.match(text, /\{"event":"end","data":\{"reason":"complete"\}\}\n$/)
      const rebound = yield* Effect.promise(
        () =>
          new Promise<number | undefined>((resolve, reject) => {
            const request = http.request(
              { host: "127.0.0.1", port, path: "/ai/agent/a", method: "POST", headers: { host: `evil.test:${port}` } },
              (response) => {
                response.resume()
                resolve(response.statusCode)
              }
            )
            request.on("error", reject)
            request.end()
          })
      )
      assert.strictEqual(rebound, 403)
    })
  )
})
