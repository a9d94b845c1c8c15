import { Config, Effect, Layer, MutableRef, Option, Redacted, References, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { FetchHttpClient } from "effect/http"
import * as Aidream from "../layers/aidream/Aidream.ts"
import { Credentials } from "../layers/aidream/Credentials.ts"
import { layerFileStore } from "../layers/aidream/FileStore.ts"
import { hostToolSource } from "../layers/aidream/HostToolSource.ts"
import { ToolLibrary } from "../layers/aidream/ToolLibrary.ts"
import * as Bridge from "../layers/bridge/Bridge.ts"
import { BridgeConfig } from "../layers/bridge/BridgeConfig.ts"
import { MirrorRegistry } from "../layers/bridge/MirrorRegistry.ts"
import { WebSocketListener } from "../layers/bridge/WebSocketListener.ts"
import { MemoryHost } from "../layers/host/MemoryHost.ts"
import { bridgeConfig, bridgeFlags } from "./bridgeFlags.ts"
import { ChatExit, exitCodes, SignalStatus } from "./chatExit.ts"
import { conversationFolder, guestFingerprint } from "./chatFolder.ts"
import { ChatInput } from "./chatInput.ts"
import { ChatOutput } from "./chatOutput.ts"
import { chat } from "./chatSession.ts"

const HttpUrl = Schema.String.check(
  Schema.makeFilter((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    message: "must be an http or https URL"
  })
)

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.withSchema(Schema.NonEmptyString)
  )

/** The library of the chat has every tool that applications mirror on the bridge. */
const mirroredTools = Layer.effectDiscard(
  Effect.gen(function* () {
    const library = yield* ToolLibrary
    yield* library.addSource(hostToolSource(yield* MirrorRegistry))
  })
)

/** A token out of the environment, or a guest of this state folder. Never the one in place of the other. */
const credentials = (tokenEnv: string | undefined) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (tokenEnv === undefined) {
        const { stateDir } = yield* BridgeConfig
        return Credentials.layerGuest(yield* guestFingerprint(stateDir))
      }
      const token = Option.getOrUndefined(yield* Config.Redacted(tokenEnv).pipe(Config.option))
      if (token === undefined || Redacted.value(token) === "") {
        return yield* new ChatExit({ code: 1, message: `there is no token in the variable ${tokenEnv}` })
      }
      return Credentials.layerBearer(token)
    })
  )

/** A chat tells of the bridge itself; what is logged beside it is for whoever asks for it. */
const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(References.MinimumLogLevel, (level) =>
    level === "Info" ? Effect.provideService(effect, References.MinimumLogLevel, "Warn") : effect
  )

/** The journal, which outlives the process. */
const journal = (conversation: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { stateDir } = yield* BridgeConfig
      return layerFileStore(yield* conversationFolder(stateDir, conversation))
    })
  )

/** `chat`: a remote agent in the terminal, which can use the tools of every connected application. */
export const chatCommand = Command.make(
  "chat",
  {
    baseUrl: text("base-url", "URL", "Where the agent's backend is").pipe(Flag.withSchema(HttpUrl)),
    agent: text("agent", "ID", "The agent to talk to"),
    conversation: text(
      "conversation",
      "ID",
      "Go on with a conversation: what an earlier process left of its last turn is finished first"
    ).pipe(Flag.optional),
    message: Flag.String("message").pipe(
      Flag.withMetavar("TEXT"),
      Flag.withDescription(
        "Send this, wait for the end of the turn, and exit. Without it, each line of standard input is a message"
      ),
      Flag.optional
    ),
    tokenEnv: text("token-env", "NAME", "The variable with the bearer token; without it the chat is a guest's").pipe(
      Flag.optional
    ),
    approveWrites: Flag.Literals("approve-writes", ["ask", "always", "never"]).pipe(
      Flag.withDescription(
        "Ask on the terminal about each call that writes, which denies it where there is no terminal; or let all run; or none"
      ),
      Flag.withDefault("ask")
    ),
    waitFor: text(
      "wait-for",
      "NAMESPACE",
      "Wait, up to a minute, until this application has connected; may be repeated"
    ).pipe(Flag.atLeast(0)),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print every event as a JSON object on a line of standard output"),
      Flag.withDefault(false)
    ),
    ...bridgeFlags
  },
  Effect.fnUntraced(function* ({
    agent,
    approveWrites,
    baseUrl,
    conversation: given,
    json,
    message,
    tokenEnv,
    waitFor,
    ...flags
  }) {
    MutableRef.set(yield* SignalStatus, 130)
    const conversation = Option.getOrElse(given, () => globalThis.crypto.randomUUID())
    const bridge = Bridge.layer.pipe(Layer.provide(MemoryHost.layer()), Layer.provideMerge(bridgeConfig(flags)))
    const outbound = mirroredTools.pipe(
      Layer.provideMerge(
        Aidream.layer({
          config: { baseUrl, toolHint: "look at the tools of your next step: they come and go with applications" },
          capabilities: { surface: "effect-frontend-tools/chat" }
        })
      ),
      Layer.provide(
        Layer.mergeAll(credentials(Option.getOrUndefined(tokenEnv)), journal(conversation), FetchHttpClient.layer)
      )
    )
    const terminal = Layer.merge(ChatInput.layer({ messages: Option.isNone(message) }), ChatOutput.layer(json))

    yield* Effect.gen(function* () {
      const { port, url } = yield* WebSocketListener
      const output = yield* ChatOutput
      yield* output.fact({ event: "listening", url, port }, `applications connect to ${url}`)
      yield* chat({
        agent,
        approveWrites,
        conversation,
        continued: Option.isSome(given),
        message: Option.getOrUndefined(message),
        waitFor
      })
    }).pipe(
      quietly,
      // A terminal that is still read would keep the process alive.
      Effect.ensuring(Effect.sync(() => process.stdin.destroy())),
      Effect.provide(terminal.pipe(Layer.provideMerge(outbound), Layer.provideMerge(bridge)))
    )
  })
).pipe(
  Command.withShortDescription("Chat with a remote agent that can use the tools of the connected applications"),
  Command.withDescription(
    `Chat with a remote agent that can use the tools of every application connected to the bridge of this process.

  Standard output has the agent's text, standard error the rest. What the agent delegated is kept in the state
  folder, so a chat that was killed goes on with --conversation. On a terminal, /cancel stops a turn and /quit
  ends the chat.

  Exit status
${exitCodes.map(([code, meaning]) => `    ${String(code).padEnd(5)}${meaning}`).join("\n")}`
  ),
  Command.withExamples([
    {
      command:
        'effect-frontend-tools chat --base-url http://127.0.0.1:8080 --agent any --message "What is on my list?"',
      description: "One turn, for a script"
    }
  ])
)
