import { assert, describe, it } from "@effect/vitest"
import { Option, Result, Schema } from "effect"
import {
  CallResultFrame,
  type ClientFrame,
  decodeClientFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeServerFrame,
  type Phase,
  type ServerFrame
} from "../../../src/domain/bridge/Frame.ts"
import { MAX_DESCRIPTION_LENGTH, MAX_SCHEMA_LENGTH } from "../../../src/domain/bridge/RemoteTool.ts"
import { Namespace, PublicName, RawName } from "../../../src/domain/bridge/ToolName.ts"

const refusal = (text: string, phase: Phase = "session") => {
  const decoded = decodeClientFrame(text, phase)
  if (Result.isSuccess(decoded)) return assert.fail(`was accepted: ${text.slice(0, 80)}`)
  return decoded.failure
}

const accepted = (text: string, phase: Phase = "session") => {
  const decoded = decodeClientFrame(text, phase)
  if (Result.isFailure(decoded)) return assert.fail(decoded.failure.message)
  return decoded.success
}

const OBJECT = { type: "object" }

const anyJson = Schema.Json

// What JSON makes of a frame: a negative zero is a zero there.
const onTheWire = <F>(frame: F): F => JSON.parse(JSON.stringify(frame))

const jsonObject = Schema.Record(Schema.String, anyJson)

const clientFrames = Schema.Union([
  Schema.Struct({ type: Schema.Literal("hello"), protocol: Schema.Literal(5), key: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("register"),
    tools: Schema.NonEmptyArray(
      Schema.Struct({
        name: RawName,
        description: Schema.String,
        readOnly: Schema.optionalKey(Schema.Boolean),
        parametersSchema: jsonObject,
        outputSchema: Schema.optionalKey(jsonObject)
      })
    )
  }),
  Schema.Struct({ type: Schema.Literal("unregister"), names: Schema.NonEmptyArray(Schema.NonEmptyString) }),
  Schema.Struct({
    type: Schema.Literal("callResult"),
    callId: Schema.NonEmptyString,
    ok: Schema.Literal(true),
    result: anyJson
  }),
  Schema.Struct({
    type: Schema.Literal("callResult"),
    callId: Schema.NonEmptyString,
    ok: Schema.Literal(false),
    error: Schema.Struct({ code: Schema.String, message: Schema.String })
  }),
  Schema.Struct({ type: Schema.Literal("pong") })
])

const serverFrames = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("welcome"),
    protocol: Schema.Literal(5),
    server: Schema.String,
    namespace: Namespace
  }),
  Schema.Struct({ type: Schema.Literal("registered"), names: Schema.Array(PublicName) }),
  Schema.Struct({ type: Schema.Literal("unregistered"), names: Schema.Array(Schema.String) }),
  Schema.Struct({
    type: Schema.Literal("call"),
    callId: Schema.NonEmptyString,
    name: Schema.NonEmptyString,
    args: anyJson
  }),
  Schema.Struct({ type: Schema.Literal("ping") }),
  Schema.Struct({ type: Schema.Literal("error"), code: Schema.String, message: Schema.String })
])

const phaseOf = (frame: ClientFrame | ServerFrame): Phase =>
  frame.type === "hello" || frame.type === "welcome" ? "hello" : "session"

describe("Frame", () => {
  it.prop("every client frame survives the wire", [clientFrames], ([frame]) => {
    assert.deepStrictEqual(
      decodeClientFrame(encodeClientFrame(frame), phaseOf(frame)),
      Result.succeed(onTheWire(frame))
    )
  })

  it.prop("every server frame survives the wire", [serverFrames], ([frame]) => {
    assert.deepStrictEqual(
      decodeServerFrame(encodeServerFrame(frame), phaseOf(frame)),
      Result.succeed(onTheWire(frame))
    )
  })

  it.prop("decoding never throws, and says why it refuses", [Schema.String, Schema.Json], ([text, json]) => {
    for (const hostile of [
      text,
      JSON.stringify(json),
      JSON.stringify({ type: text }),
      `{"type":"register","tools":${text}}`
    ]) {
      for (const phase of ["hello", "session"] as const) {
        for (const refused of [
          Result.getFailure(decodeClientFrame(hostile, phase)),
          Result.getFailure(decodeServerFrame(hostile, phase))
        ]) {
          if (Option.isSome(refused)) assert.isNotEmpty(refused.value.message)
        }
      }
    }
  })

  it("names the path of the first violation", () => {
    const refused = refusal(
      JSON.stringify({
        type: "register",
        tools: [
          { name: "a", description: "d", parametersSchema: OBJECT },
          { name: "b", description: 1, parametersSchema: 2 }
        ]
      })
    )
    assert.deepStrictEqual(refused.path, ["tools", 1, "description"])
    assert.strictEqual(refused.message, 'tool "b" description must be a string')
    assert.isFalse(refused.fatal)
  })

  it("bounds what one tool may put into every model request", () => {
    const tool = (extra: object) =>
      JSON.stringify({ type: "register", tools: [{ name: "a", description: "d", parametersSchema: OBJECT, ...extra }] })
    assert.include(
      refusal(tool({ description: "x".repeat(MAX_DESCRIPTION_LENGTH + 1) })).message,
      'tool "a" description'
    )
    assert.include(
      refusal(tool({ outputSchema: { title: "x".repeat(MAX_SCHEMA_LENGTH) } })).message,
      'tool "a" outputSchema must be at most'
    )
    accepted(tool({ description: "x".repeat(MAX_DESCRIPTION_LENGTH) }))
  })

  it("quotes no more of a frame than a log line holds", () => {
    assert.isBelow(refusal(JSON.stringify({ type: "x".repeat(1_000_000) })).message.length, 200)
  })

  describe("hostile JSON", () => {
    it("does not take a __proto__ key for a field", () => {
      assert.strictEqual(refusal('{"__proto__":{"type":"pong"}}').message, "unknown message type undefined")
      const frame = accepted('{"type":"callResult","callId":"c","ok":true,"result":{"__proto__":{"polluted":true}}}')
      assert.notProperty({}, "polluted")
      assert.strictEqual(
        JSON.stringify(frame),
        '{"type":"callResult","callId":"c","ok":true,"result":{"__proto__":{"polluted":true}}}'
      )
    })

    it.each(["constructor", "toString", "__proto__", "hasOwnProperty"])("does not know a frame of type %s", (type) => {
      assert.include(refusal(JSON.stringify({ type })).message, "unknown message type")
    })

    it("takes 10,000 levels of nesting as a result and refuses them as a type or a schema", () => {
      const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`
      accepted(`{"type":"callResult","callId":"c","ok":true,"result":${deep}}`)
      accepted(`{"type":"callResult","callId":"c","ok":true,"result":[-0,${deep}]}`)
      assert.include(refusal(`{"type":${deep}}`).message, "unknown message type")
      const schema = `${'{"items":'.repeat(10_000)}{}${"}".repeat(10_000)}`
      const refused = refusal(
        `{"type":"register","tools":[{"name":"a","description":"d","parametersSchema":${schema}}]}`
      )
      assert.strictEqual(refused.code, "invalid_tool")
    })

    it("lets the last of two equal keys count, as JSON.parse does", () => {
      assert.deepInclude(accepted('{"type":"hello","type":"pong"}'), { type: "pong" })
    })

    it("carries lone surrogates through unharmed", () => {
      const text = '{"type":"callResult","callId":"c","ok":true,"result":"\\ud800"}'
      assert.strictEqual(JSON.stringify(accepted(text)), text)
    })

    it("turns a negative zero into a zero, however deep, and leaves texts alone", () => {
      const frame = accepted('{"type":"callResult","callId":"c","ok":true,"result":{"a":[-0, -0.0, -0e5, "-0", -0.5]}}')
      assert.deepStrictEqual(frame, {
        type: "callResult",
        callId: "c",
        ok: true,
        result: { a: [0, 0, 0, "-0", -0.5] }
      })
      assert.deepInclude(accepted('{"type":"callResult","callId":"c","ok":true,"result":-0}'), { result: 0 })
    })

    it.each(["1e999", "-1e+400", `1${"0".repeat(400)}`])(
      "makes a result with the number %s the tool's failure",
      (number) => {
        const frame = accepted(`{"type":"callResult","callId":"c","ok":true,"result":{"n":${number}}}`)
        assert.deepInclude(frame, { callId: "c", ok: false })
      }
    )

    it("keeps large numbers that JSON carries", () => {
      const text = '{"type":"callResult","callId":"c","ok":true,"result":[1e+308,1e-320,"1e999"]}'
      assert.deepInclude(accepted(text), { ok: true })
    })
  })

  it("decodes a callResult to the one of its two forms", () => {
    const isCallResult = Schema.is(CallResultFrame)
    assert.isTrue(isCallResult(accepted('{"type":"callResult","callId":"c","ok":true}')))
    assert.deepStrictEqual(
      accepted('{"type":"callResult","callId":"c","ok":false,"result":1,"error":{"code":"x","message":"y","more":1}}'),
      { type: "callResult", callId: "c", ok: false, error: { code: "x", message: "y" } }
    )
  })
})
