import { join } from "node:path"
import { Effect } from "effect"
import { createServer, type PluginOption } from "vite"

const root = join(import.meta.dirname, "../..")

/** A folder below this package, served for development until the scope closes. Gives the address. */
export const serveForDevelopment = (folder: string, cacheDir: string, plugins: Array<PluginOption>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = await createServer({
        root: folder,
        cacheDir,
        plugins,
        configFile: false,
        logLevel: "error",
        optimizeDeps: {
          include: ["react", "react-dom/client", "react/jsx-dev-runtime", "effect-frontend-tools/promise"]
        },
        server: { host: "127.0.0.1", port: 0, fs: { allow: [root] } }
      })
      return server.listen()
    }),
    (server) => Effect.promise(() => server.close())
  ).pipe(Effect.map(({ resolvedUrls }) => resolvedUrls?.local[0] ?? ""))
