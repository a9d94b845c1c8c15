import { assert, describe, it } from "@effect/vitest"
import type { ToolSpec } from "../../src/domain/aidream/ToolSpec.ts"
import type { Agent } from "../../src/layers/backend/Agents.ts"
import { browserDom, desktopNative, type ResolvedClient } from "../../src/layers/backend/Capabilities.ts"
import { discoveryEntry } from "../../src/layers/backend/Discovery.ts"
import { sameSchema } from "../../src/layers/backend/SameSchema.ts"
import type { CatalogTool } from "../../src/layers/backend/ToolCatalog.ts"
import { type MergeInput, mergeTools } from "../../src/layers/backend/ToolMerge.ts"

const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }

const entry = (name: string, more?: Partial<CatalogTool>): CatalogTool => ({
  name,
  description: name,
  inputSchema: schema,
  executors: [],
  ...more
})

const catalog = [
  discoveryEntry,
  entry("forms:fill", { executors: ["chrome-extension"], id: "id-fill" }),
  entry("pilot:drive", { executors: ["chrome-extension.pilot"] }),
  entry("desk:run", { executors: ["matrx-local"] }),
  entry("both:page", { executors: ["matrx-user", "chrome-extension"] }),
  entry("either:one", { executors: ["chrome-extension"] }),
  entry("search"),
  entry("gated", { requiresExecutor: "chrome-extension" }),
  entry("nobody")
]

const client = (executors: ReadonlyArray<string>, more?: Partial<ResolvedClient>): ResolvedClient => ({
  capabilities: [],
  state: new Map(),
  executors,
  mayAdminister: true,
  ...more
})

const reg = (name: string, more?: { readonly tool_id?: string }): ToolSpec => ({
  kind: "registered",
  name,
  delegate: false,
  ...more
})

const inline = (name: string, more?: { readonly description?: string; readonly input_schema?: typeof schema }) =>
  ({ kind: "inline", name, description: "d", input_schema: schema, ...more }) as const

const merge = (options: {
  readonly tools?: ReadonlyArray<ToolSpec>
  readonly client?: ResolvedClient
  readonly agent?: Partial<Agent>
  readonly request?: Partial<MergeInput["request"]>
  readonly input?: Partial<MergeInput>
}) =>
  mergeTools({
    catalog,
    served: new Set(["load_chrome_tools", "search", "gated", "either__one"]),
    agent: { instructions: "", tools: [], ...options.agent },
    client: options.client ?? client(["chrome-extension"]),
    request: {
      tools: options.tools ?? [],
      toolsReplace: undefined,
      amendments: { add: [], remove: [] },
      user: { add: [], remove: [] },
      targetInstanceId: undefined,
      ...options.request
    },
    hostExclusions: [],
    added: [],
    removed: [],
    ...options.input
  })

const names = (options: Parameters<typeof merge>[0]) => merge(options).tools.map(({ wireName }) => wireName)
const codes = (options: Parameters<typeof merge>[0]) => merge(options).problems.map(({ code }) => code)
const route = (tools: ReadonlyArray<ToolSpec>, ...executors: ReadonlyArray<string>) =>
  merge({ tools, client: client(executors) }).tools[0]?.route

describe("mergeTools", () => {
  it("takes every source once, always-on tools first", () => {
    assert.deepStrictEqual(
      names({
        agent: { tools: ["search"] },
        tools: [reg("search"), inline("page:look"), reg("forms__fill"), reg("anything", { tool_id: "id-fill" })],
        client: client(["chrome-extension"], { capabilities: [browserDom] }),
        request: {
          amendments: { add: [inline("page:click"), reg("forms:fill")], remove: [] },
          user: { add: ["search", "both:page"], remove: [] }
        }
      }),
      ["load_chrome_tools", "search", "page__click", "forms__fill", "page__look", "both__page"]
    )
  })

  it("a replaced set is the whole set", () => {
    assert.deepStrictEqual(
      names({
        agent: { tools: ["search"] },
        client: client(["chrome-extension"], { capabilities: [browserDom] }),
        request: { toolsReplace: [inline("only")], amendments: { add: [inline("more")], remove: [] } }
      }),
      ["only"]
    )
    assert.deepStrictEqual(names({ agent: { tools: ["search"] }, request: { toolsReplace: [] } }), [])
  })

  it("leaves out what agent, client, user or host exclude, in any spelling", () => {
    const tools = [reg("forms:fill"), reg("search"), inline("a:b"), inline("c:d"), inline("e")]
    assert.deepStrictEqual(
      names({
        tools,
        agent: { denied: ["search"] },
        request: { amendments: { add: [], remove: ["forms__fill"] }, user: { add: [], remove: ["a__b"] } },
        input: { hostExclusions: ["c.d"] }
      }),
      ["e"]
    )
  })

  it("routes to a live client first, then to the server, and drops what nobody live can run", () => {
    const browser = { _tag: "Client", executor: "chrome-extension", targetInstanceId: undefined } as const
    assert.deepStrictEqual(route([reg("either:one")], "chrome-extension"), browser)
    assert.deepStrictEqual(route([reg("either:one")]), { _tag: "Server" })
    assert.deepStrictEqual(route([reg("both:page")], "chrome-extension"), browser)
    assert.strictEqual(route([reg("both:page")], "matrx-local"), undefined)
    assert.strictEqual(route([reg("forms:fill")]), undefined)
    assert.deepStrictEqual(merge({ tools: [reg("forms:fill")], client: client([]) }).misconfigured, [])
    assert.deepStrictEqual(merge({ tools: [reg("nobody")] }).misconfigured, ["nobody"])
  })

  it("a dotted child counts as its parent, both ways", () => {
    assert.strictEqual(route([reg("forms:fill")], "chrome-extension.pilot")?._tag, "Client")
    assert.strictEqual(route([reg("pilot:drive")], "chrome-extension")?._tag, "Client")
    assert.strictEqual(route([reg("forms:fill")], "chrome-extensions"), undefined)
    assert.strictEqual(route([reg("gated")], "chrome-extension.pilot")?._tag, "Server")
  })

  it("F-11: a gate drops a server tool, and an inline copy of an absent executor's tool", () => {
    assert.strictEqual(route([reg("gated")]), undefined)
    assert.strictEqual(route([inline("forms:fill")]), undefined)
    assert.strictEqual(route([inline("gated")]), undefined)
    assert.strictEqual(route([inline("forms:fill")], "chrome-extension")?._tag, "Client")
    assert.strictEqual(route([inline("page:own")])?._tag, "Client")
  })

  it("F-28: a desktop is stamped on desktop-bound tools only", () => {
    const desktop = client(["matrx-local", "chrome-extension"], {
      capabilities: [desktopNative],
      state: new Map([["desktop-native", { instance_id: "mine", selected_target_instance_id: "picked" }]])
    })
    const targets = (targetInstanceId: string | undefined) =>
      merge({
        tools: [reg("desk:run"), reg("forms:fill"), inline("x")],
        client: desktop,
        request: { targetInstanceId }
      }).tools.map(({ route: to }) => (to._tag === "Client" ? to.targetInstanceId : "server"))
    assert.deepStrictEqual(targets("asked"), ["asked", undefined, undefined])
    assert.deepStrictEqual(targets(undefined), ["picked", undefined, undefined])
  })

  it("refuses what cannot be merged, and lists all of it", () => {
    assert.deepStrictEqual(codes({ tools: [reg("nope")] }), ["tool_not_found"])
    assert.deepStrictEqual(codes({ tools: [{ kind: "agent", agent_id: "x" }] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [reg("forms:fill"), inline("forms:fill")] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [inline("forms:fill"), reg("forms:fill")] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [inline("forms__fill")] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [inline("a:b"), inline("a__b")] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [inline("a"), inline("a", { description: "other" })] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [inline(`${"a".repeat(60)}:::`)] }), ["tool_merge_error"])
    assert.deepStrictEqual(codes({ tools: [reg("x"), reg("y"), { kind: "agent", agent_id: "z" }] }), [
      "tool_not_found",
      "tool_not_found",
      "tool_merge_error"
    ])
    const colliding = [...catalog, entry("a:b", { executors: ["chrome-extension"] }), entry("a__b", { id: "other" })]
    assert.deepStrictEqual(
      codes({ tools: [reg("a:b"), reg("zzz", { tool_id: "other" })], input: { catalog: colliding } }),
      ["tool_merge_error"]
    )
  })

  it("is idempotent: the same tool twice is one tool, whatever the order of its schema", () => {
    const shuffled = { required: ["a"], properties: { a: { type: "string" } }, type: "object" }
    const tools = [inline("a"), inline("a", { input_schema: shuffled }), reg("search"), reg("search")]
    assert.deepStrictEqual(names({ tools }), ["a", "search"])
    assert.deepStrictEqual(codes({ tools }), [])
  })
})

describe("sameSchema", () => {
  it("ignores the order of keys and of sets, at any depth, and of nothing else", () => {
    const left = { type: ["string", "null"], enum: ["a", "b"], anyOf: [{ required: ["x", "y"] }, { const: 1 }] }
    const right = { anyOf: [{ const: 1 }, { required: ["y", "x"] }], enum: ["b", "a"], type: ["null", "string"] }
    assert.isTrue(sameSchema(left, right))
    assert.isFalse(sameSchema({ prefixItems: [1, 2] }, { prefixItems: [2, 1] }))
    assert.isFalse(sameSchema({ enum: ["a"] }, { enum: ["a", "b"] }))
    assert.isFalse(sameSchema({ a: 1 }, { a: "1" }))
  })
})
