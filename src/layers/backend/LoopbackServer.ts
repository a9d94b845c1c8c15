import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import type { LanguageModel } from "effect/ai"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { apiErrorBody } from "../../domain/aidream/ApiError.ts"
import { type Agent, Agents } from "./Agents.ts"
import { Authentication } from "./Authentication.ts"
import * as Backend from "./Backend.ts"
import { BackendConfig } from "./BackendConfig.ts"
import { Capabilities } from "./Capabilities.ts"
import { Models } from "./Models.ts"
import { ServerTools } from "./ServerTools.ts"
import * as SqlLedger from "./SqlLedger.ts"
import type { SqliteOptions } from "./sql/SqliteClient.ts"
import { type CatalogTool, ToolCatalog } from "./ToolCatalog.ts"

/**
 * A complete backend on the loopback interface, for one person's machine, for demos
 * and for tests. It trusts every token, so it is nothing to put on a network.
 */
export const layer = <E, R>(options: {
  /** 0: any free port. */
  readonly port: number
  readonly database: SqliteOptions
  readonly model: Layer.Layer<LanguageModel.LanguageModel, E, R>
  readonly catalog?: ReadonlyArray<CatalogTool> | undefined
  readonly agent?: Agent | undefined
  readonly serverTools?: Layer.Layer<ServerTools> | undefined
  readonly config?: Partial<BackendConfig["Service"]> | undefined
}) => {
  const config = BackendConfig.layer(options.config)
  const services = Layer.mergeAll(
    Authentication.layerTrusting,
    Agents.layerAny(options.agent ?? { instructions: "You are a helpful assistant.", tools: [] }),
    Capabilities.layer(),
    Models.layer.pipe(Layer.provide(options.model)),
    ToolCatalog.layer(options.catalog ?? []),
    options.serverTools ?? ServerTools.layerNone,
    SqlLedger.layerSqlite(options.database).pipe(Layer.provide(config)),
    config
  )
  return HttpRouter.serve(Layer.mergeAll(Backend.layer, onlyLoopback), {
    disableListenLog: true,
    disableLogger: true
  }).pipe(
    Layer.provide(services),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: options.port, host: "127.0.0.1" }))
  )
}

const loopbackHosts: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"])

/** A page that resolves its own name to this machine still sends that name: refuse it. */
const onlyLoopback = HttpRouter.use((router) =>
  router.addGlobalMiddleware((handle) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
      loopbackHosts.has((headers.host ?? "").replace(/:\d+$/, "").toLowerCase())
        ? handle
        : Effect.succeed(
            HttpServerResponse.jsonUnsafe(
              apiErrorBody("host_not_allowed", "this server answers to loopback names only"),
              {
                status: 403
              }
            )
          )
    )
  )
)
