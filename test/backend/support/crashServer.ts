/**
 * A backend in a process of its own, to be killed: `node crashServer.ts <db> <log> <port>`.
 * Its turns have server tools, client tools and both at once, with pauses in between.
 */
import { appendFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Layer, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { HttpServer } from "effect/http"
import * as LoopbackServer from "../../../src/layers/backend/LoopbackServer.ts"
import * as ScriptedModel from "../../../src/layers/backend/ScriptedModel.ts"
import { ServerTools } from "../../../src/layers/backend/ServerTools.ts"

const [, , database = "", log = "", port = "0"] = process.argv

const note = Tool.make("note", { parameters: Schema.Struct({ key: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(note)

const serverTools = ServerTools.layer(toolkit).pipe(
  Layer.provide(
    toolkit.toLayer({
      note: ({ key }) =>
        // The effect that must not happen twice.
        Effect.sync(() => appendFileSync(log, `${key}\n`)).pipe(Effect.andThen(Effect.sleep(8)), Effect.as("noted"))
    })
  )
)

let asked = 0

const model = ScriptedModel.layer(({ step }) => {
  const key = `${process.pid}-${asked++}`
  switch (step) {
    case 0:
      return {
        text: "First. ",
        delay: 5,
        calls: [
          { tool: "note", arguments: { key }, id: `s${key}` },
          { tool: "look", arguments: { key }, id: `c${key}` }
        ]
      }
    case 1:
      return {
        delay: 5,
        calls: [
          { tool: "look", arguments: { key: `${key}a` }, id: `c${key}a` },
          { tool: "look", arguments: { key: `${key}b` }, id: `c${key}b` }
        ]
      }
    case 2:
      return { delay: 5, calls: [{ tool: "note", arguments: { key }, id: `s${key}` }] }
    default:
      return { text: "finished", delay: 5 }
  }
})

const server = LoopbackServer.layer({
  port: Number(port),
  database: { filename: database, durability: "normal" },
  model,
  serverTools,
  agent: { instructions: "", tools: ["note"] },
  config: { runLease: 500, heartbeat: 100, windDownLease: 300, sweepInterval: 200 }
})

Layer.effectDiscard(
  Effect.flatMap(HttpServer.HttpServer, ({ address }) => Console.log(`port ${"port" in address ? address.port : 0}`))
).pipe(Layer.provide(server), Layer.launch, NodeRuntime.runMain)
