/**
 * The 82 frame vectors recorded from the peer bridge, replayed over a real socket.
 * Ours may differ where the protocol's description says so, and nowhere else.
 */
import { readFileSync } from "node:fs"
import { assertSupportedJsonSchema, validateJsonSchemaValue } from "@deepseek-ai/dsh-tools"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import WebSocket from "ws"
import { Bridge, BridgeConfig, MemoryHost, WebSocketListener } from "../../../src/index.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

interface Vector {
  readonly label: string
  readonly phase: "hello" | "session"
  readonly send: ReadonlyArray<unknown>
  readonly answers: ReadonlyArray<unknown>
  readonly close: number | "open"
}

const vectors: ReadonlyArray<Vector> = JSON.parse(readFileSync(new URL("./vectors.json", import.meta.url), "utf8"))

const invalidTool = (message: string): Partial<Vector> => ({
  answers: [{ type: "error", code: "invalid_tool", message }],
  close: "open"
})

/** What ours answers instead, and why the description wants it so (part l). */
const intended: Readonly<Record<string, Partial<Vector>>> = {
  // Binary messages are refused.
  "binary junk": {
    answers: [{ type: "error", code: "invalid_message", message: "frame must be a text message" }],
    close: 1003
  },
  "binary hello": {
    answers: [{ type: "error", code: "invalid_message", message: "frame must be a text message" }],
    close: 1003
  },
  // A fault inside a tool refuses its batch and keeps the session.
  "register non-object tool": invalidTool("each registered tool must be an object"),
  "register null tool": invalidTool("each registered tool must be an object"),
  "register array tool": invalidTool("each registered tool must be an object"),
  "tool name missing": invalidTool("tool name undefined must match ^[A-Za-z0-9_-]{1,64}$"),
  "tool name empty": invalidTool('tool name "" must match ^[A-Za-z0-9_-]{1,64}$'),
  "tool name bad character": invalidTool('tool name "a b" must match ^[A-Za-z0-9_-]{1,64}$'),
  "tool name 65": invalidTool(`tool name "${"x".repeat(65)}" must match ^[A-Za-z0-9_-]{1,64}$`),
  "description missing": invalidTool('tool "a" description must be a string'),
  "description number": invalidTool('tool "a" description must be a string'),
  "readOnly text": invalidTool('tool "a" readOnly must be a boolean when present'),
  "readOnly null": invalidTool('tool "a" readOnly must be a boolean when present'),
  "parametersSchema missing": invalidTool('tool "a" parametersSchema must be a JSON object'),
  "parametersSchema null": invalidTool('tool "a" parametersSchema must be a JSON object'),
  "parametersSchema array": invalidTool('tool "a" parametersSchema must be a JSON object'),
  "outputSchema null": invalidTool('tool "a" outputSchema must be a JSON object'),
  "outputSchema array": invalidTool('tool "a" outputSchema must be a JSON object'),
  "a name error is checked before too many": invalidTool('tool name "d e" must match ^[A-Za-z0-9_-]{1,64}$'),
  // No model's arguments can be anything but an object.
  "parametersSchema string root": invalidTool('tool "a" parametersSchema must have type "object" at its root'),
  // A client that lists an extension is told what was agreed on.
  "hello good with extra fields": {
    answers: [
      {
        type: "welcome",
        protocol: 5,
        server: "frontend-tools-bridge",
        namespace: "demo",
        features: ["cancel"],
        limits: { maxFrameBytes: 16 * 1024 * 1024 }
      }
    ]
  },
  // A name that is asked for twice is removed once.
  "unregister one name twice": {
    answers: [
      { type: "registered", names: ["demo__a"] },
      { type: "unregistered", names: ["a"] }
    ]
  }
}

// A fatal frame of ours closes with an explicit code where the peer sends none.
const NO_STATUS = 1005
const POLICY_VIOLATION = 1008

const violations = (schema: unknown): ReadonlyArray<string> => {
  try {
    assertSupportedJsonSchema(schema)
    return []
  } catch (error) {
    return String(error instanceof Error ? error.message : error)
      .replace("unsupported JSON schema: ", "")
      .split("; ")
  }
}

const bridge = Layer.unwrap(
  Effect.map(temporaryFolder, (stateDir) =>
    Bridge.layer.pipe(
      Layer.provide(
        BridgeConfig.layer({ port: 0, stateDir, maxTools: 3, staticClients: [{ namespace: "demo", key: "k" }] })
      ),
      Layer.provide(MemoryHost.layer({ profile: { violations, mismatches: validateJsonSchemaValue } })),
      Layer.provide(NodeServices.layer)
    )
  )
)

/** Sends the frames one by one, each after the answers to the one before it, and says what came back. */
const observe = (url: string, vector: Vector, expectsClose: boolean) =>
  Effect.promise(async () => {
    const socket = new WebSocket(url)
    const answers: Array<unknown> = []
    let close: number | "open" = "open"
    const closed = new Promise<void>((resolve) =>
      socket.on("close", (code) => {
        close = code
        resolve()
      })
    )
    await new Promise((resolve) => socket.on("open", resolve))
    socket.on("message", (data) => answers.push(JSON.parse(String(data))))
    // The library's own pong comes after the answers to everything before its ping.
    const settled = () => {
      const answered = new Promise((resolve) => socket.once("pong", resolve))
      socket.ping()
      return Promise.race([closed, answered])
    }
    if (vector.phase === "session") {
      socket.send(JSON.stringify({ type: "hello", protocol: 5, key: "k" }))
      await new Promise((resolve) => socket.once("message", resolve))
      answers.shift()
    }
    for (const frame of vector.send) {
      if (typeof frame === "object" && frame !== null && "$binaryHex" in frame) {
        socket.send(Buffer.from(String(frame.$binaryHex), "hex"))
      } else if (typeof frame === "object" && frame !== null && "$text" in frame) {
        socket.send(String(frame.$text))
      } else {
        socket.send(JSON.stringify(frame))
      }
      // A frame after the fatal one is not sent: the recording did not send it either.
      if (socket.readyState === socket.OPEN) await settled()
    }
    if (expectsClose) await closed
    const seen = { answers, close }
    socket.terminate()
    await closed
    return seen
  })

// What the engine says about a text that is no JSON is its own wording.
const withoutEngineText = (answers: ReadonlyArray<unknown>) =>
  JSON.parse(JSON.stringify(answers).replace(/(frame is not valid JSON: )(?:[^"\\]|\\.)*/g, "$1…"))

describe("recorded frame vectors", () => {
  it("are 82, and every intended difference is one of them", () => {
    assert.strictEqual(vectors.length, 82)
    const labels = new Set(vectors.map(({ label }) => label))
    assert.deepStrictEqual(
      Object.keys(intended).filter((label) => !labels.has(label)),
      []
    )
  })

  it.layer(bridge, { excludeTestServices: true })((it) => {
    for (const vector of vectors) {
      it.effect(vector.label, () =>
        Effect.gen(function* () {
          const { url } = yield* WebSocketListener
          const expected = {
            answers: vector.answers,
            close: vector.close === NO_STATUS ? POLICY_VIOLATION : vector.close,
            ...intended[vector.label]
          }
          const seen = yield* observe(url, vector, expected.close !== "open")
          assert.deepStrictEqual(
            { answers: withoutEngineText(seen.answers), close: seen.close },
            { answers: withoutEngineText(expected.answers), close: expected.close }
          )
        })
      )
    }
  })
})
