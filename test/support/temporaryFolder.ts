import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem } from "effect"

/** A folder that is gone when the scope closes. */
export const temporaryFolder = FileSystem.FileSystem.use((fs) =>
  fs.makeTempDirectoryScoped({ prefix: "effect-frontend-tools-" })
).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))
