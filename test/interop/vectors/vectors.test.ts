import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { assertSupportedJsonSchema, validateJsonSchemaValue } from "@deepseek-ai/dsh-tools"
console.log(typeof assertSupportedJsonSchema, typeof validateJsonSchemaValue)
