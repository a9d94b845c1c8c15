/**
 * `node --expose-gc bench/backend.ts`: the backend in a process of its own, with its
 * database in a file and full durability. 200 turns with one delegated call each, 50
 * at a time; a resume of a long conversation; what suspended conversations cost.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { createInterface } from "node:readline"
import { DatabaseSync } from "node:sqlite"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { LoopbackServer, ScriptedModel } from "../src/backend.ts"
import { inFlight, quantile } from "./harness.ts"

const [role, database = ""] = process.argv.slice(2)

const TURNS = 200
const WIDTH = 50
const MESSAGES = 200
const SUSPENDED = 1000

const heap = () => {
  globalThis.gc?.()
  globalThis.gc?.()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

/** The server's process: one delegated call per turn, or as many as it takes to fill a conversation. */
const serve = () => {
  const server = LoopbackServer.layer({
    port: 0,
    database: { filename: database },
    model: ScriptedModel.layer(({ step, userText }) =>
      step < (userText === "long" ? MESSAGES : 1) ? { calls: [{ tool: "look" }] } : { text: "done" }
    ),
    agent: { instructions: "", tools: [] }
  })
  process.on("message", () => process.send?.(heap()))
  Layer.effectDiscard(
    Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
      Effect.sync(() => process.stdout.write(`${"port" in address ? address.port : 0}\n`))
    )
  ).pipe(Layer.provide(server), Layer.launch, NodeRuntime.runMain)
}

const measure = async () => {
  const folder = mkdtempSync(`${tmpdir()}/backend-bench-`)
  const child = spawn(process.execPath, ["--expose-gc", import.meta.filename, "serve", `${folder}/ledger.db`], {
    stdio: ["ignore", "pipe", "inherit", "ipc"]
  })
  try {
    const [port] = await once(createInterface(child.stdout ?? process.stdin), "line")
    const base = `http://127.0.0.1:${port}/ai`
    const tools = [{ kind: "inline", name: "look" }]
    const headers = { authorization: "Bearer ada" }
    let failures = 0
    const samples = { start: [] as Array<number>, results: [] as Array<number>, resume: [] as Array<number> }

    /** Time to the head of the answer; the body is read too. */
    const post = async (kind: keyof typeof samples, path: string, body: unknown) => {
      const begun = performance.now()
      const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) })
      samples[kind].push(performance.now() - begun)
      if (response.status !== 200) failures++
      return response.text()
    }
    const start = async (message: string) => {
      const id = crypto.randomUUID()
      const body = { conversation_id: id, is_new: true, user_input: message, tools, max_iterations: MESSAGES + 1 }
      return { id, text: await post("start", "/agent/any", body) }
    }
    const callId = (text: string) => /"pending_call_ids":\["([^"]+)"/.exec(text)?.[1] ?? ""
    const goOn = async (id: string, text: string) => {
      await post("results", `/conversations/${id}/tool_results`, {
        results: [{ call_id: callId(text), tool_name: "look", output: { ok: true } }]
      })
      return post("resume", `/conversations/${id}/resume`, { tools })
    }
    const turn = async () => {
      const { id, text } = await start("hello")
      const last = await goOn(id, text)
      if (!last.includes('"status":"completed"')) failures++
    }
    const report = (name: string, value: number, unit: string) =>
      console.log(`${name.padEnd(52)} ${value.toPrecision(4)} ${unit}`)

    await inFlight(turn, TURNS, WIDTH)
    for (const kind of [samples.start, samples.results, samples.resume]) kind.length = 0
    report(`turns, ${WIDTH} at a time`, await inFlight(turn, TURNS, WIDTH), "/s")
    for (const [name, kind] of Object.entries(samples)) {
      report(`${name}: p50`, quantile(kind, 0.5), "ms")
      report(`${name}: p99`, quantile(kind, 0.99), "ms")
    }

    for (const kind of [samples.start, samples.results, samples.resume]) kind.length = 0
    for (let i = 0; i < 50; i++) await turn()
    report("resume, one at a time: p50", quantile(samples.resume, 0.5), "ms")

    let { id, text } = await start("long")
    for (let i = 0; i < MESSAGES - 20; i++) text = await goOn(id, text)
    const whole: Array<number> = []
    for (let i = 0; i < 19; i++) {
      const begun = performance.now()
      text = await goOn(id, text)
      whole.push(performance.now() - begun)
    }
    report(`results and whole resume of ${MESSAGES} messages: p50`, quantile(whole, 0.5), "ms")
    const db = new DatabaseSync(`${folder}/ledger.db`)
    const reads = Array.from({ length: 20 }, () => {
      const begun = performance.now()
      db.prepare("SELECT * FROM messages WHERE conversation_id = ? ORDER BY position").all(id)
      db.prepare("SELECT * FROM tool_calls WHERE conversation_id = ?").all(id)
      return performance.now() - begun
    })
    db.close()
    report("reading the same rows: p50", quantile(reads, 0.5), "ms")

    const memory = async () => {
      child.send("memory")
      const [bytes] = await once(child, "message")
      return Number(bytes)
    }
    await memory()
    const before = await memory()
    await inFlight(() => start("hello"), SUSPENDED, WIDTH)
    report(`memory per suspended conversation, of ${SUSPENDED}`, ((await memory()) - before) / SUSPENDED, "bytes")
    report("answers that were not 200", failures, "")
  } finally {
    child.kill()
    await once(child, "exit")
    rmSync(folder, { recursive: true, force: true })
  }
}

await (role === "serve" ? serve() : measure())
