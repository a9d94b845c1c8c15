import { Effect } from "effect"
import type { CallError } from "../../src/domain/bridge/BridgeError.ts"
import { type HostTool, makeWriteTool, type ReadTool, type WriteTool } from "../../src/domain/bridge/HostTool.ts"
import { publicName, RawName, toolLabel } from "../../src/domain/bridge/ToolName.ts"

interface Options {
  readonly namespace?: string
  readonly description?: string
  readonly parametersSchema?: HostTool["parametersSchema"]
  readonly outputSchema?: HostTool["outputSchema"]
}

type Body = (args: unknown) => Effect.Effect<unknown, CallError>

const fields = (rawName: string, options: Options) => {
  const namespace = options.namespace ?? "shop"
  return {
    publicName: publicName(namespace, rawName),
    label: toolLabel(namespace, rawName),
    namespace,
    rawName: RawName.make(rawName),
    description: options.description ?? `The tool ${rawName}.`,
    parametersSchema: options.parametersSchema ?? { type: "object" },
    outputSchema: options.outputSchema
  }
}

export const readTool = (
  rawName: string,
  call: Body = () => Effect.succeed(null),
  options: Options = {}
): ReadTool => ({
  ...fields(rawName, options),
  access: "read",
  call
})

export const writeTool = (
  rawName: string,
  write: Body = () => Effect.succeed(null),
  options: Options = {}
): WriteTool => makeWriteTool(fields(rawName, options), write)
