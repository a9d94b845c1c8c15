/**
 * A shop as a program of its own. It notes every run of a tool in a file, so that a second
 * run would be seen, and connects again whenever its bridge has been away.
 */
import { appendFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Effect, Schedule, Schema } from "effect"
import { connect } from "../todo-list/connect.ts"
import { type ApplicationTool, defineTool } from "../todo-list/todoList.ts"

const Article = Schema.Struct({ article: Schema.NonEmptyString })

const makeShop = (notes: string): ReadonlyArray<ApplicationTool> => {
  const note = (what: string) => appendFileSync(notes, `${what}\n`)
  return [
    defineTool({
      name: "stock",
      description: "What is in stock.",
      readOnly: true,
      parameters: Schema.Record(Schema.String, Schema.Never),
      run: () => {
        note("stock")
        return ["hat", "scarf"]
      }
    }),
    defineTool({
      name: "order",
      description: "Order an article.",
      readOnly: false,
      parameters: Article,
      run: ({ article }) => {
        note(`order ${article}`)
        return { ordered: article }
      }
    }),
    defineTool({
      name: "ship",
      description: "Ship an article that was ordered.",
      readOnly: false,
      parameters: Article,
      run: ({ article }) => {
        note(`ship ${article}`)
        return { shipped: article }
      }
    })
  ]
}

const main = Effect.gen(function* () {
  const key = yield* Config.Redacted("SHOP_KEY")
  const url = yield* Config.String("SHOP_BRIDGE")
  const tools = makeShop(yield* Config.String("SHOP_NOTES"))
  const session = Effect.scoped(Effect.flatMap(connect({ url, key, tools }), ({ closed }) => closed))
  yield* session.pipe(Effect.ignore, Effect.repeat(Schedule.spaced("100 millis")))
})

NodeRuntime.runMain(main)
