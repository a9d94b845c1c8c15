import { Schema } from "effect"
import type { JsonObject } from "../../domain/bridge/RemoteTool.ts"

/** JSON Schema of what a schema decodes, without a wrapper. */
export const jsonSchemaOf = (schema: Schema.Constraint): JsonObject => {
  const document = Schema.toJsonSchemaDocument(schema)
  const root: JsonObject = document.schema
  return Object.keys(document.definitions).length === 0 ? root : { ...root, $defs: document.definitions }
}
