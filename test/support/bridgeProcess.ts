import { Context, Effect, Exit, Layer, Schedule, Scope } from "effect"
import { type BridgeOptionsInput, type HostTool, MemoryHost, WebSocketListener } from "../../src/index.ts"
import { socketBridge } from "./socketBridge.ts"

/** A bridge on a real port that a test may stop and start again, as a person restarts a program. */
export const startBridge = Effect.fnUntraced(function* (options: BridgeOptionsInput = {}) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.buildWithScope(socketBridge(options), scope)
  const host = Context.get(services, MemoryHost)
  /** Waits until the tools of the host are as the test wants them. */
  const until = (wanted: (tools: ReadonlyArray<HostTool>) => boolean) =>
    Effect.filterOrFail(host.tools, wanted).pipe(
      Effect.retry(Schedule.spaced("20 millis")),
      Effect.timeout("10 seconds")
    )
  return {
    url: Context.get(services, WebSocketListener).url,
    host,
    until,
    /** Waits until the host has all of these tools. */
    offers: (...names: ReadonlyArray<string>) =>
      until((tools) => names.every((name) => tools.some(({ publicName }) => publicName === name))),
    /** Waits until the host has this tool no more. */
    lacks: (name: string) => until((tools) => tools.every(({ publicName }) => publicName !== name)),
    /** Calls a tool; what writes is approved. */
    call: (name: string, args: unknown = {}) => host.call(name, args, () => Effect.succeed(true)),
    stop: Scope.close(scope, Exit.void)
  }
})

/** Somebody who is asked, and says yes or no when the test does. */
export const makePerson = () => {
  const asked: Array<{ readonly tool: HostTool; readonly args: unknown }> = []
  let answer: (yes: boolean) => void = () => {}
  const answered = new Promise<boolean>((resolve) => {
    answer = resolve
  })
  return {
    asked,
    answer,
    approve: (tool: HostTool, args: unknown) =>
      Effect.suspend(() => {
        asked.push({ tool, args })
        return Effect.promise(() => answered)
      })
  }
}
