/** Serves the todo page, and plays the host behind it where there is one. */
import { createServer } from "node:http"
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse, HttpStaticServer } from "effect/http"
import type { MemoryHost } from "effect-frontend-tools"
import { clientModule } from "./bundle.ts"

export const NAMESPACE = "todo-page"

/** What a host would be asked by a model, asked here by the page's own "Be the model". */
export interface Host {
  readonly memory: MemoryHost["Service"]
  /** Hears of every call before it is made. */
  readonly onCall: (name: string, args: unknown) => Effect.Effect<void>
}

export interface TodoPageOptions {
  /** 0 takes any free port. */
  readonly port: number
  /** The bridge that the page connects to. */
  readonly bridge: string
  /** The host of that bridge, when it is in this process. */
  readonly host?: Host | undefined
}

const Admission = Schema.Struct({ key: Schema.String })
const Call = Schema.Struct({ tool: Schema.String, arguments: Schema.Unknown, allowed: Schema.Boolean })

/**
 * The page on this machine's own address. Only the page itself may ask for calls: another
 * site's request has another origin, and one that resolves its own name to this machine
 * another host.
 */
export const layer = ({ bridge, host, port }: TodoPageOptions) => {
  const outcome = (name: string, args: unknown, allowed: boolean) =>
    Effect.suspend(() => {
      if (host === undefined || Option.isNone(host.memory.tool(name))) {
        return Effect.succeed({ ok: false, message: `there is no tool ${name}` })
      }
      return host.memory
        .call(name, args, () => Effect.succeed(allowed))
        .pipe(
          Effect.match({
            onSuccess: (result) => ({ ok: true, result }),
            onFailure: ({ message }) => ({ ok: false, message })
          })
        )
    })

  const answer = (value: unknown) => HttpServerResponse.jsonUnsafe(value, { headers: { "cache-control": "no-store" } })

  const asked = <A, R>(body: Schema.ConstraintDecoder<A>, handle: (body: A) => Effect.Effect<unknown, never, R>) =>
    Effect.gen(function* () {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      if (
        headers.origin !== `http://${headers.host}` ||
        !/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(headers.host ?? "")
      ) {
        return answer({ ok: false, message: "only the page itself may ask" })
      }
      return answer(yield* handle(yield* HttpServerRequest.schemaBodyJson(body)))
    }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty({ status: 400 }))))

  const routes = HttpRouter.use((router) =>
    Effect.gen(function* () {
      const client = yield* clientModule
      yield* router.add(
        "GET",
        "/modules/promise.js",
        HttpServerResponse.text(client, { contentType: "text/javascript" })
      )
      yield* router.add("GET", "/settings", answer({ bridge, namespace: NAMESPACE, plays: host !== undefined }))
      yield* router.add(
        "POST",
        "/admit",
        // What a model does with the pasted text; the person has pressed the button.
        asked(Admission, ({ key }) => outcome("frontend_tools_register_client", { namespace: NAMESPACE, key }, true))
      )
      yield* router.add(
        "POST",
        "/call",
        asked(Call, ({ allowed, arguments: args, tool }) => {
          const name = `${NAMESPACE}__${tool}`
          return Effect.andThen(
            host === undefined ? Effect.void : host.onCall(name, args),
            outcome(name, args, allowed)
          )
        })
      )
    })
  )
  const page = HttpStaticServer.layer({ root: join(import.meta.dirname, "page"), cacheControl: "no-cache" })

  return HttpRouter.serve(Layer.mergeAll(routes, page), { disableListenLog: true, disableLogger: true }).pipe(
    Layer.provide(NodeServices.layer),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" }))
  )
}
