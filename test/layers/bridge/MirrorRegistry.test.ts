import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import {
  BridgeConfig,
  type CallError,
  type HostTool,
  jsonSchemaProfile,
  MemoryHost,
  MirrorRegistry,
  Namespace,
  RawName,
  type RemoteTool,
  type SessionCalls,
  ToolHost,
  ToolRefused
} from "../../../src/index.ts"
import { readTool } from "../../support/hostTools.ts"
import { connect, listed, memoryBridge, registerReads } from "../../support/memoryBridge.ts"

const remote = (name: string, extra: Partial<RemoteTool> = {}): RemoteTool => ({
  name: RawName.make(name),
  description: "",
  parametersSchema: { type: "object" },
  readOnly: true,
  ...extra
})

const calls: SessionCalls = {
  forward: (): Effect.Effect<unknown, CallError> => Effect.succeed(null),
  settle: () => false
}

const demo = { namespace: Namespace.make("demo"), calls }

const registry = MirrorRegistry.layer.pipe(Layer.provideMerge(MemoryHost.layer()), Layer.provide(BridgeConfig.layer()))

describe("MirrorRegistry", () => {
  it.effect("takes a batch back that the host refuses half-way, and leaves the owner of the name alone", () =>
    Effect.gen(function* () {
      const host = yield* ToolHost
      yield* host.register(readTool("b", () => Effect.succeed("theirs"), { namespace: "demo" }))
      const application = yield* connect("demo")
      assert.deepStrictEqual(registerReads(application, "a", "b", "c"), [
        {
          type: "error",
          code: "invalid_tool",
          message: 'registering mirrored tools failed: tool "demo__b" is already registered'
        }
      ])
      assert.deepStrictEqual(yield* listed, ["demo__b"])
      assert.strictEqual(yield* MemoryHost.use((memory) => memory.call("demo__b", {})), "theirs")
      assert.deepStrictEqual(registerReads(application, "a", "c"), [
        { type: "registered", names: ["demo__a", "demo__c"] }
      ])
    }).pipe(Effect.provide(memoryBridge()))
  )

  it.effect("leaves another session's tool in place when a batch with the same public name is refused", () =>
    Effect.gen(function* () {
      const mirror = yield* MirrorRegistry
      // No roster admits both of these; the registry does not rely on that.
      const one = yield* mirror.open({ namespace: Namespace.make("a"), calls })
      const other = yield* mirror.open({ namespace: Namespace.make("a__b"), calls })
      yield* one.register([remote("b__c")])
      const owned = mirror.lookup("a__b__c")
      const refused = yield* Effect.flip(other.register([remote("c")]))
      assert.include(refused.message, 'tool "a__b__c" is already registered')
      assert.isDefined(owned)
      assert.strictEqual(mirror.lookup("a__b__c"), owned)
    }).pipe(Effect.provide(registry))
  )

  it.effect("hands a host what it needs to know of a tool", () =>
    Effect.gen(function* () {
      const mirror = yield* MirrorRegistry
      const session = yield* mirror.open(demo)
      yield* session.register([
        remote("read", { parametersSchema: {}, outputSchema: { type: "string" } }),
        { name: RawName.make("order"), description: "", parametersSchema: { type: "object" } }
      ])
      const described = (tool: HostTool | undefined) =>
        tool === undefined
          ? undefined
          : [tool.access, tool.label, tool.namespace, tool.rawName, tool.parametersSchema, tool.outputSchema]
      assert.deepStrictEqual(described(mirror.lookup("demo__read")), [
        "read",
        "demo.read",
        "demo",
        "read",
        { type: "object" },
        { type: "string" }
      ])
      assert.deepStrictEqual(described(mirror.lookup("demo__order")), [
        "write",
        "demo.order",
        "demo",
        "order",
        { type: "object" },
        undefined
      ])
    }).pipe(Effect.provide(registry))
  )

  it.effect("says which schema of which tool the host does not support", () => {
    const picky = Layer.succeed(ToolHost, {
      profile: {
        ...jsonSchemaProfile,
        violations: (schema) => ("$ref" in schema ? ["schema.$ref is not supported"] : [])
      },
      register: () => Effect.void
    })
    return Effect.gen(function* () {
      const session = yield* (yield* MirrorRegistry).open(demo)
      const refused = yield* Effect.flip(session.register([remote("a"), remote("b", { outputSchema: { $ref: "#" } })]))
      assert.strictEqual(
        refused.message,
        'tool "b" declares a JSON Schema the tool registry does not support: unsupported JSON schema: schema.$ref is not supported'
      )
      assert.strictEqual(session.size(), 0)
    }).pipe(Effect.provide(MirrorRegistry.layer.pipe(Layer.provide([picky, BridgeConfig.layer()]))))
  })

  it.effect("registers nothing for a session that ended while the host took its time", () =>
    Effect.gen(function* () {
      const ready = yield* Deferred.make<void>()
      const onHost = new Set<string>()
      const slow = Layer.succeed(ToolHost, {
        profile: jsonSchemaProfile,
        register: ({ publicName }) =>
          Effect.acquireRelease(
            Effect.andThen(
              Deferred.await(ready),
              Effect.sync(() => void onHost.add(publicName))
            ),
            () => Effect.sync(() => void onHost.delete(publicName))
          )
      })
      yield* Effect.gen(function* () {
        const mirror = yield* MirrorRegistry
        const fiber = yield* Effect.scoped(
          Effect.gen(function* () {
            const session = yield* mirror.open(demo)
            return yield* Effect.forkDetach(Effect.exit(session.register([remote("a"), remote("b")])), {
              startImmediately: true
            })
          })
        )
        yield* Deferred.succeed(ready, undefined)
        yield* Effect.yieldNow
        assert.deepStrictEqual(fiber.pollUnsafe()?._tag, "Success")
        assert.deepStrictEqual(yield* mirror.tools, [])
        assert.deepStrictEqual([...onHost], [])
      }).pipe(Effect.provide(MirrorRegistry.layer.pipe(Layer.provide([slow, BridgeConfig.layer()]))))
    })
  )

  it.effect("passes a host's refusal on in its own words", () => {
    const full = Layer.succeed(ToolHost, {
      profile: jsonSchemaProfile,
      register: ({ publicName }) => Effect.fail(new ToolRefused({ publicName, message: "the host is full" }))
    })
    return Effect.gen(function* () {
      const session = yield* (yield* MirrorRegistry).open(demo)
      const refused = yield* Effect.flip(session.register([remote("a")]))
      assert.strictEqual(refused.message, "registering mirrored tools failed: the host is full")
    }).pipe(Effect.provide(MirrorRegistry.layer.pipe(Layer.provide([full, BridgeConfig.layer()]))))
  })
})
