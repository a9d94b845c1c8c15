import { Effect, Layer } from "effect"
import { BackendConfig } from "../../src/layers/backend/BackendConfig.ts"
import * as SqlLedger from "../../src/layers/backend/SqlLedger.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"
import { ledgerSuite } from "./support/ledgerSuite.ts"

ledgerSuite("SQLite in memory", () =>
  SqlLedger.layerSqlite({ filename: ":memory:" }).pipe(Layer.provide(BackendConfig.layer()))
)

ledgerSuite("SQLite in a file", () =>
  Layer.unwrap(
    Effect.map(temporaryFolder, (folder) =>
      SqlLedger.layerSqlite({ filename: `${folder}/ledger.db`, durability: "normal" })
    )
  ).pipe(Layer.provide(BackendConfig.layer()))
)
