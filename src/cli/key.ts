import { Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { buildClientKeyClipboardText, generateClientKey } from "../domain/bridge/ClientKey.ts"
import { NAMESPACE_PATTERN } from "../domain/bridge/ToolName.ts"

const Namespace = Schema.String.check(
  Schema.isPattern(NAMESPACE_PATTERN, { message: `must match ${NAMESPACE_PATTERN.source}` })
)

/** `key`: makes a DSH KEY for an application. */
export const keyCommand = Command.make(
  "key",
  {
    namespace: Flag.String("namespace").pipe(
      Flag.withDescription("Namespace of the application: the beginning of its tools' public names"),
      Flag.withSchema(Namespace),
      Flag.withDefault("my-app")
    ),
    appName: Flag.String("app-name").pipe(
      Flag.withDescription("Name of the application, for the person who pastes the text"),
      Flag.optional
    )
  },
  ({ appName, namespace }) =>
    Effect.suspend(() => {
      const key = generateClientKey()
      const text = buildClientKeyClipboardText({ namespace, key, appName: Option.getOrUndefined(appName) })
      return Console.log(`${key}\n\n${text}`)
    })
).pipe(Command.withDescription("Print a new DSH KEY, and the text to paste to a model that admits the application"))
