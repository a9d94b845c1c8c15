import { Effect, Exit, Layer, Result, Schema, SchemaIssue } from "effect"
import { AdminRefused, CallError } from "../../domain/bridge/BridgeError.ts"
import { CLIENT_KEY_PATTERN } from "../../domain/bridge/ClientKey.ts"
import { type HostTool, makeWriteTool } from "../../domain/bridge/HostTool.ts"
import type { JsonObject } from "../../domain/bridge/RemoteTool.ts"
import { NAMESPACE_PATTERN, type Namespace, PublicName, RawName, toolLabel } from "../../domain/bridge/ToolName.ts"
import { ToolHost, type ToolRefused } from "../host/ToolHost.ts"
import { BridgeServer } from "./BridgeServer.ts"
import { Roster, type RosterChange } from "./Roster.ts"
import { WebSocketListener } from "./WebSocketListener.ts"

/** The namespace of the bridge's own tools. */
const OWNER = "frontend_tools"

// One text whatever is wrong with the argument. A key is never part of it.
const textArgument = (pattern: RegExp, message: string) =>
  Schema.String.annotate({ message }).check(Schema.isPattern(pattern, { message }))

const NAMESPACE = `namespace must be a string matching ${NAMESPACE_PATTERN.source} (for example "eatc")`
const KEY = `key must be a string matching ${CLIENT_KEY_PATTERN.source}; the application generates it with the client SDK's generateClientKey`

const namespace = textArgument(NAMESPACE_PATTERN, NAMESPACE).pipe(
  Schema.brand("Namespace"),
  Schema.annotateKey({ messageMissingKey: NAMESPACE })
)
const key = textArgument(CLIENT_KEY_PATTERN, KEY).pipe(
  Schema.brand("ClientKey"),
  Schema.annotateKey({ messageMissingKey: KEY })
)

const RegisterArguments = Schema.Struct({ namespace, key }).annotate({
  message: NAMESPACE,
  messageUnexpectedKey: "only namespace and key are taken"
})
const RevokeArguments = Schema.Struct({ namespace }).annotate({
  message: NAMESPACE,
  messageUnexpectedKey: "only namespace is taken"
})
const NoArguments = Schema.Record(Schema.String, Schema.Never.annotate({ message: "no arguments are taken" })).annotate(
  {
    message: "no arguments are taken"
  }
)

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const refused = (message: string) => new CallError({ reason: new AdminRefused({ message }) })

const decodeWith = <A>(schema: Schema.ConstraintDecoder<A>) => {
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error" })
  return (args: unknown): Effect.Effect<A, CallError> => {
    const decoded = decode(args)
    if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
    const [first] = issuesOf(decoded.failure.issue).issues
    return Effect.fail(refused(first?.message ?? "invalid arguments"))
  }
}

const objectSchema = (properties: Readonly<Record<string, string>>): JsonObject => ({
  type: "object",
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, description]) => [name, { type: "string", description }])
  ),
  required: Object.keys(properties),
  additionalProperties: false
})

const named = (name: string, description: string, parametersSchema: JsonObject) => ({
  publicName: PublicName.make(`${OWNER}_${name}`),
  label: toolLabel(OWNER, name),
  namespace: OWNER,
  rawName: RawName.make(name),
  description,
  parametersSchema
})

/**
 * The bridge's own tools on the host: register, list and revoke clients (bridge
 * protocol, part g). They do not count against the tool budget. Building the layer
 * fails when the host refuses one of them, as it does when a second bridge runs on
 * the same host.
 */
export const layer: Layer.Layer<never, ToolRefused, BridgeServer | Roster | ToolHost | WebSocketListener> =
  Layer.effectDiscard(
    Effect.gen(function* () {
      const host = yield* ToolHost
      const roster = yield* Roster
      const server = yield* BridgeServer
      const listener = yield* WebSocketListener

      /** Ends the sessions whose key no longer holds. Says whether `namespace` was among them. */
      const drop = Effect.fnUntraced(function* ({ invalidated }: RosterChange, asked: Namespace) {
        let dropped = false
        for (const other of invalidated) {
          const was = yield* server.disconnect(other, "its key is no longer valid")
          dropped ||= was && other === asked
        }
        return dropped
      })

      const register = (args: unknown) =>
        Effect.gen(function* () {
          const client = yield* decodeWith(RegisterArguments)(args)
          const change = yield* roster.register(client.namespace, client.key)
          yield* drop(change, client.namespace)
          yield* Effect.logInfo(`registered client ${client.namespace}`)
          return {
            namespace: client.namespace,
            url: listener.url,
            replaced: change.displaced,
            note: "The application may connect now. It keeps its access until the client is revoked."
          }
        }).pipe(Effect.catchTag(["RosterRefused", "RosterFileError"], (error) => Effect.fail(refused(error.message))))

      const revoke = (args: unknown) =>
        Effect.gen(function* () {
          const client = yield* decodeWith(RevokeArguments)(args)
          const changed = yield* Effect.exit(roster.revoke(client.namespace))
          if (Exit.isSuccess(changed)) {
            const connectionDropped = yield* drop(changed.value, client.namespace)
            if (!changed.value.displaced) {
              return { namespace: client.namespace, revoked: false, reason: "no client is registered under this name" }
            }
            yield* Effect.logInfo(`revoked client ${client.namespace}`)
            return { namespace: client.namespace, revoked: true, connectionDropped }
          }
          return yield* Effect.failCause(changed.cause).pipe(
            Effect.catchTag("RosterFileError", (error) =>
              // What could not be saved comes back with the next start; the person has to know.
              Effect.flatMap(server.disconnect(client.namespace, "revoked"), (dropped) =>
                Effect.fail(
                  refused(
                    `the roster could not be saved, so "${client.namespace}" is still registered${dropped ? " although its connection was dropped" : ""}: ${error.message}`
                  )
                )
              )
            )
          )
        }).pipe(Effect.catchTag("RosterRefused", (error) => Effect.fail(refused(error.message))))

      const list = (args: unknown) =>
        Effect.gen(function* () {
          yield* decodeWith(NoArguments)(args ?? {})
          const clients = []
          for (const client of yield* roster.clients) {
            const session = yield* server.session(client.namespace)
            clients.push({
              namespace: client.namespace,
              connected: session !== undefined,
              toolCount: session?.toolCount ?? 0
            })
          }
          return { clients }
        })

      const tools: ReadonlyArray<HostTool> = [
        makeWriteTool(
          named(
            "register_client",
            "Admit an application: bind the key it shows to its namespace, so that it can connect and offer its tools. A new key for a known namespace takes the place of the old one and ends that connection.",
            objectSchema({
              namespace: "The namespace the application shows beside its key.",
              key: "The DSH KEY the application shows: 64 lower-case hex characters."
            })
          ),
          register
        ),
        {
          ...named(
            "list_clients",
            "List the applications that may connect, whether each is connected now, and how many tools it offers.",
            objectSchema({})
          ),
          access: "read",
          call: list
        },
        makeWriteTool(
          named(
            "revoke_client",
            "Withdraw an application's access: its key no longer holds, its connection ends and its tools disappear.",
            objectSchema({ namespace: "The namespace of the application." })
          ),
          revoke
        )
      ]
      yield* Effect.forEach(tools, host.register, { discard: true })
    })
  )
