import { createFrontendToolsClient } from "effect-frontend-tools/promise"

const todos = ["Read the README"]

const client = createFrontendToolsClient({
  url: process.env.BRIDGE_URL ?? "ws://127.0.0.1:31870",
  key: process.env.TODO_KEY,
  // The bridge may start after this program.
  retryFirstConnect: true
})

client.onStateChange((state, { message }) => console.log(message === undefined ? state : `${state}: ${message}`))

await client.connect()

const names = await client.registerTools([
  {
    name: "list",
    description: "List everything on the todo list.",
    parametersSchema: { type: "object" },
    readOnly: true,
    execute: () => todos
  },
  {
    name: "add",
    description: "Put something on the todo list.",
    parametersSchema: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
    execute: ({ title }) => {
      todos.push(title)
      return { count: todos.length }
    }
  }
])
console.log(`registered ${names.join(", ")}`)
