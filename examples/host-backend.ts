import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { HttpRouter, HttpServerResponse } from "effect/http"
import * as Backend from "../src/backend.ts"

// A tool your server runs itself.
const Weather = Tool.make("weather", {
  description: "The weather of a city.",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.Struct({ sky: Schema.String })
})
const ServerToolkit = Toolkit.make(Weather)
const ServerToolkitLive = ServerToolkit.toLayer({ weather: () => Effect.succeed({ sky: "clear" }) })

// A tool that runs in your users' pages. Pages may also bring tools of their own, with each request.
const catalog = Backend.ToolCatalog.layer([
  {
    name: "shop:add_to_cart",
    description: "Puts an article into the visitor's cart.",
    inputSchema: { type: "object", properties: { article: { type: "string" } }, required: ["article"] },
    executors: [Backend.MATRX_USER]
  }
])

// Who sends a request: your sessions, your tokens.
const authentication = Backend.Authentication.layer({
  verify: (token) =>
    Effect.succeed(Redacted.value(token) === "token-of-ada" ? Option.some({ id: "ada" }) : Option.none())
})

const agents = Backend.Agents.layer({
  assistant: { instructions: "You help the visitors of a shop.", tools: ["weather", "shop:add_to_cart"] }
})

// Any provider's LanguageModel layer of effect/ai goes here.
const model = Backend.ScriptedModel.layer(({ step }) =>
  step === 0
    ? {
        calls: [
          { tool: "weather", arguments: { city: "Oslo" } },
          { tool: "shop__add_to_cart", arguments: { article: "hat" } }
        ]
      }
    : { text: "The sky is clear, and the hat is in your cart." }
)

const config = Backend.BackendConfig.layer()
const ledger = Backend.SqlLedger.layerSqlite({ filename: process.argv[2] ?? "backend.db" })

const backend = Backend.layer.pipe(
  Layer.provide(authentication),
  Layer.provide(agents),
  Layer.provide(catalog),
  Layer.provide(Backend.ServerTools.layer(ServerToolkit).pipe(Layer.provide(ServerToolkitLive))),
  Layer.provide(Backend.Capabilities.layer()),
  Layer.provide(Backend.Models.layer.pipe(Layer.provide(model))),
  Layer.provide(ledger),
  Layer.provide(config)
)

// The routes go into any router, beside your own.
const health = HttpRouter.add("GET", "/health", Effect.succeed(HttpServerResponse.text("ok")))

HttpRouter.serve(Layer.mergeAll(backend, health)).pipe(
  Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: Number(process.env.PORT ?? 8080) })),
  Layer.launch,
  NodeRuntime.runMain
)
