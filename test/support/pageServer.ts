import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer } from "effect"
import { rolldown } from "rolldown"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The page has the client as `sdk`: tests write their application's code where it is tested. */
const PAGE = `<!doctype html>
<title>Test</title>
<body></body>
<script type="module">
  import * as sdk from "/sdk.js"
  globalThis.sdk = sdk
</script>`

/** The same where the browser has no model context of its own, but a polyfill. */
const POLYFILLED = `<script>delete Document.prototype.modelContext</script>
<script type="module">
  import { initializeWebMCPPolyfill } from "/polyfill.js"
  initializeWebMCPPolyfill()
</script>
${PAGE}`

/** What the page's global is, for `page.evaluate`. */
export type Sdk = typeof import("../../src/promise.ts")

const modules = {
  sdk: "effect-frontend-tools/promise",
  polyfill: "@mcp-b/webmcp-polyfill",
  worker: "./test/browser/pages/worker.ts"
}

/**
 * A web server with an empty page that has the client. `/csp` is the same under a policy
 * that allows connections to the page's own site only, `/polyfilled` has a model context that is
 * not the browser's, and `/frame?of=URL` is a frame around another page.
 */
export class PageServer extends Context.Service<PageServer, { readonly port: number; readonly origin: string }>()(
  "test/PageServer"
) {
  static readonly layer = Layer.effect(
    PageServer,
    Effect.gen(function* () {
      const files = yield* Effect.promise(async () => {
        const bundle = await rolldown({ input: modules, cwd: root, platform: "browser" })
        const { output } = await bundle.generate({ format: "esm" })
        await bundle.close()
        return new Map(output.flatMap((file) => (file.type === "chunk" ? [[`/${file.fileName}`, file.code]] : [])))
      })
      const server = createServer((request, response) => {
        const { pathname, searchParams } = new URL(request.url ?? "/", "http://page")
        const code = files.get(pathname)
        response.setHeader("content-type", code === undefined ? "text/html" : "text/javascript")
        if (pathname === "/csp") response.setHeader("content-security-policy", "connect-src 'self'")
        if (pathname === "/frame") response.end(`<iframe src="${searchParams.get("of")}"></iframe>`)
        else response.end(code ?? (pathname === "/polyfilled" ? POLYFILLED : PAGE))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => {
          server.listen(0, "127.0.0.1", () => resume(Effect.void))
        }),
        () =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeAllConnections()
          })
      )
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { port, origin: `http://127.0.0.1:${port}` }
    })
  )
}
