import { Context } from "@deepseek-ai/cordis"
import Invariants from "@deepseek-ai/dsh-invariants"
import Sessions from "@deepseek-ai/dsh-session"
import SystemPrompt from "@deepseek-ai/dsh-system-prompt"
import Tools from "@deepseek-ai/dsh-tools"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Companion from "../../../src/invariant.ts"

const definition = (name: string) => ({
  name,
  description: "",
  parameters: { type: "object" },
  output: { schema: {}, render: () => [] },
  execute: async () => null
})

describe("the invariant companion", () => {
  it.live("lets legal names pass and reports one that no provider takes", () =>
    Effect.gen(function* () {
      const ctx = yield* Effect.acquireRelease(
        Effect.sync(() => new Context()),
        (context) => Effect.promise(async () => context.fiber.dispose())
      )
      yield* Effect.promise(async () => {
        await ctx.plugin(SystemPrompt)
        await ctx.plugin(Sessions)
        await ctx.plugin(Tools)
        await ctx.plugin(Invariants, {})
        await Reflect.apply(ctx.plugin, ctx, [Companion])
      })
      ctx.tools.register(definition("shop__cart"))
      assert.throws(
        () => ctx.tools.register(definition("no name")),
        /effect-frontend-tools.*tool name "no name" must match/s
      )
    })
  )
})
