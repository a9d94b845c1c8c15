import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { CatalogTool } from "../../src/layers/backend/ToolCatalog.ts"
import {
  accepted,
  answer,
  database,
  delegatedIds,
  inline,
  lastResults,
  make,
  outline,
  pending,
  rest,
  resume,
  start,
  textOf,
  uuid
} from "./support/backend.ts"

const tools = [inline("look")]

describe("sweeps", () => {
  it.effect("run by themselves: a call nobody answers ends, and its turn can be resumed", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: ({ prompt, step }) =>
          step === 0 ? { calls: [{ tool: "look", id: "c" }] } : { text: lastResults(prompt) },
        config: { delegationLifetime: "1 day", sweepInterval: "1 hour" }
      })
      const id = uuid()
      yield* rest(yield* start(backend, id, { tools }))
      yield* TestClock.adjust("23 hours")
      assert.strictEqual(pending(yield* backend.get(`/ai/conversations/${id}/pending_calls`)).length, 1)
      yield* TestClock.adjust("2 hours")
      assert.strictEqual(pending(yield* backend.get(`/ai/conversations/${id}/pending_calls`)).length, 0)
      assert.strictEqual(
        textOf(yield* rest(yield* resume(backend, id, { tools }))),
        'look:!"No client answered this call in time."'
      )
    })
  )

  it.effect("a turn of a dead process is paused by any other", () =>
    Effect.gen(function* () {
      const shared = yield* database
      const stuck = yield* Deferred.make<void>()
      const dead = yield* make(
        {
          model: () => {
            Deferred.doneUnsafe(stuck, Effect.void)
            return { text: "never", delay: 10_000_000 }
          },
          // As good as dead: it neither renews nor sweeps.
          wrapLedger: (ledger) => ({ ...ledger, renew: () => Effect.void, sweep: Effect.never })
        },
        shared
      )
      yield* start(dead, uuid())
      yield* Deferred.await(stuck)
      yield* make({}, shared)
      const status = Effect.map(dead.sql`SELECT status FROM user_requests`, ([turn]) => turn?.status)
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* status, "processing")
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual(yield* status, "paused")
    })
  )
})

describe("a reader that is too slow", () => {
  it.effect("is cut off, and the run goes on to its end", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        model: () => ({ text: Array.from({ length: 200 }, () => "word ").join("") }),
        config: { readerBuffer: 20 }
      })
      const events = yield* rest(yield* start(backend, uuid()))
      assert.isBelow(events.length, 200)
      assert.notInclude(outline(events), "end complete")
      const [turn] = yield* backend.sql`SELECT status FROM user_requests`
      assert.strictEqual(turn?.status, "completed")
    })
  )
})

describe("desktop tools", () => {
  const catalog: ReadonlyArray<CatalogTool> = [
    {
      name: "matrx-local:run_command",
      description: "Runs a command.",
      inputSchema: { type: "object", properties: {} },
      executors: ["matrx-local"]
    }
  ]
  const client = {
    capabilities: ["desktop-native"],
    surface: "matrx-local/desktop",
    state: {
      "desktop-native": { platform: "linux", engine_version: "1", instance_id: "desk-1", tunnel_state: "active" }
    }
  }

  it.effect("F-27, F-28: calls are for one desktop, named in event and list, and nobody else's answer counts", () =>
    Effect.gen(function* () {
      const backend = yield* make({
        catalog,
        agents: { any: { instructions: "", tools: ["matrx-local:run_command"] } },
        model: ({ step }) => (step === 0 ? { calls: [{ tool: "matrx-local__run_command", id: "d" }] } : { text: "ok" })
      })
      const id = uuid()
      const events = yield* rest(yield* start(backend, id, { client }))
      const announced = events.find((event) => event._tag === "tool_event")
      assert.deepStrictEqual(announced?.data.data, { arguments: {}, target_instance_id: "desk-1" })
      const list = (instance: string) =>
        Effect.map(backend.get(`/ai/user/pending_calls?instance_id=${instance}`), (listed) =>
          pending(listed).map(({ claimed_by_instance_id, target_instance_id }) => [
            target_instance_id,
            claimed_by_instance_id
          ])
        )
      assert.deepStrictEqual(yield* list("desk-2"), [])
      assert.deepStrictEqual(yield* list("desk-1"), [["desk-1", "desk-1"]])
      const wrong = [{ call_id: "d", is_error: true, error_message: "not mine" }]
      assert.strictEqual((yield* answer(backend, id, wrong)).status, 404)
      assert.strictEqual((yield* answer(backend, id, wrong, { instance_id: "desk-2" })).status, 404)
      const right = yield* answer(backend, id, [{ call_id: "d", output: 1 }], { instance_id: "desk-1" })
      assert.isTrue(accepted(right).continuation_needed)
    })
  )

  it.effect("F-38: a resume that declares its desktop keeps its tools, one that does not loses them", () =>
    Effect.gen(function* () {
      const offered: Array<ReadonlyArray<string>> = []
      const backend = yield* make({
        catalog,
        agents: { any: { instructions: "", tools: ["matrx-local:run_command"] } },
        model: (request) => {
          offered.push(request.tools)
          return request.step < 2 ? { calls: [{ tool: "matrx-local__run_command" }] } : { text: "ok" }
        }
      })
      const id = uuid()
      let events = yield* rest(yield* start(backend, id, { client }))
      for (const envelope of [{ client }, {}]) {
        yield* answer(backend, id, [{ call_id: delegatedIds(events)[0], output: 1 }], { instance_id: "desk-1" })
        events = yield* rest(yield* resume(backend, id, envelope))
      }
      assert.deepStrictEqual(offered, [["matrx-local__run_command"], ["matrx-local__run_command"], []])
    })
  )
})
