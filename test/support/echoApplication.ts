import { Effect } from "effect"
import { type Application, connect, tool } from "./memoryBridge.ts"

/** The calls an application in memory got, and how it answers them. */
export interface EchoApplication extends Application {
  /** Answers what was called since the last look, and names it. */
  readonly answer: () => ReadonlyArray<string>
}

/** An application in memory whose tools answer with their own name and arguments. */
export const echoApplication = Effect.fnUntraced(function* (
  namespace: string,
  tools: { readonly reads?: ReadonlyArray<string>; readonly writes?: ReadonlyArray<string> }
) {
  const application = yield* connect(namespace)
  application.say({
    type: "register",
    tools: [
      ...(tools.reads ?? []).map((name) => tool(name, { readOnly: true })),
      ...(tools.writes ?? []).map((name) => tool(name))
    ]
  })
  application.frames()
  const echo: EchoApplication = {
    ...application,
    answer: () =>
      application
        .frames()
        .filter(({ type }) => type === "call")
        .map(({ args, callId, name }) => {
          application.say({ type: "callResult", callId, ok: true, result: { ran: name, with: args } })
          return String(name)
        })
  }
  return echo
})
