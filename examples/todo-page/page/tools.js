/** What a model may do with the list: two tools that read and two that write. */
import { FrontendToolsError } from "effect-frontend-tools/promise"

/** The arguments are a model's: they are looked at before they are used. */
const text = (args, name) => {
  const value = args?.[name]
  if (typeof value === "string" && value.trim() !== "") return value.trim()
  throw new FrontendToolsError("invalid_args", `${name} must be a text that is not empty`)
}

export const makeTools = (todos) => [
  {
    name: "list_todos",
    description: "List every todo, open and done.",
    parametersSchema: { type: "object" },
    readOnly: true,
    execute: () => todos.all()
  },
  {
    name: "find_todos",
    description: "Find the todos whose title contains a text.",
    parametersSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    readOnly: true,
    execute: (args) => {
      const wanted = text(args, "text").toLowerCase()
      return todos.all().filter(({ title }) => title.toLowerCase().includes(wanted))
    }
  },
  {
    name: "add_todo",
    description: "Put a todo on the list.",
    parametersSchema: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
    execute: (args) => todos.add(text(args, "title"))
  },
  {
    name: "set_done",
    description: "Mark a todo as done, or as open again.",
    parametersSchema: {
      type: "object",
      properties: { id: { type: "integer" }, done: { type: "boolean" } },
      required: ["id", "done"]
    },
    execute: ({ id, done }) => {
      if (todos.find(id) === undefined) throw new FrontendToolsError("invalid_args", `there is no todo ${id}`)
      if (typeof done !== "boolean") throw new FrontendToolsError("invalid_args", "done must be true or false")
      todos.setDone(id, done)
      return todos.find(id)
    }
  }
]
