/** A todo list that lets a model use it: what it can do, and which of it changes something. */
import { Schema } from "effect"
import { type JsonObject, RawName, type RemoteTool } from "effect-frontend-tools/protocol"

export interface Todo {
  readonly id: number
  readonly title: string
  readonly done: boolean
}

/** A function of the application, and how it looks to a model. */
export interface ApplicationTool {
  readonly spec: RemoteTool
  /** Takes whatever the model sent and gives a JSON value. What it throws, the model reads. */
  readonly execute: (args: unknown) => unknown
}

const define = <A>(options: {
  readonly name: string
  readonly description: string
  /** Whether the tool only reads. One that writes runs when a person has allowed the call. */
  readonly readOnly: boolean
  readonly parameters: Schema.Codec<A, JsonObject>
  readonly run: (args: A) => unknown
}): ApplicationTool => {
  const decode = Schema.decodeUnknownSync(options.parameters)
  return {
    spec: {
      name: RawName.make(options.name),
      description: options.description,
      readOnly: options.readOnly,
      parametersSchema: Schema.toJsonSchemaDocument(options.parameters).schema
    },
    execute: (args) => options.run(decode(args))
  }
}

/** A new list with one thing on it, and its three tools. */
export const makeTodoList = (): ReadonlyArray<ApplicationTool> => {
  const todos: Array<Todo> = [{ id: 1, title: "Try effect-frontend-tools", done: false }]

  return [
    define({
      name: "list_todos",
      description: "List everything on the todo list.",
      readOnly: true,
      parameters: Schema.Record(Schema.String, Schema.Never),
      run: () => todos
    }),
    define({
      name: "add_todo",
      description: "Put something on the todo list.",
      readOnly: false,
      parameters: Schema.Struct({ title: Schema.NonEmptyString }),
      run: ({ title }) => {
        const todo = { id: todos.length + 1, title, done: false }
        todos.push(todo)
        return todo
      }
    }),
    define({
      name: "complete_todo",
      description: "Mark something on the todo list as done.",
      readOnly: false,
      parameters: Schema.Struct({ id: Schema.Int }),
      run: ({ id }) => {
        const index = todos.findIndex((todo) => todo.id === id)
        const todo = todos[index]
        if (todo === undefined) throw new Error(`there is no todo ${id}`)
        const done = { ...todo, done: true }
        todos[index] = done
        return done
      }
    })
  ]
}
