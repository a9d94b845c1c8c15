/** The application: a list of todos in this browser. It knows nothing of models. */

const STORED = "todos"

const first = [
  { id: 1, title: "Water the plants", done: true },
  { id: 2, title: "Book the train to Bergen", done: false },
  { id: 3, title: "Call the dentist", done: false }
]

/** A list, and a way to hear of its changes. `changed` is the id of the todo that changed, if it still is there. */
export const makeTodos = (storage) => {
  const listeners = new Set()
  const stored = storage.getItem(STORED)
  let todos = stored === null ? first : JSON.parse(stored)

  const update = (next, changed) => {
    todos = next
    storage.setItem(STORED, JSON.stringify(todos))
    for (const listener of listeners) listener(todos, changed)
  }

  return {
    all: () => todos,
    find: (id) => todos.find((todo) => todo.id === id),
    add: (title) => {
      const todo = { id: Math.max(0, ...todos.map(({ id }) => id)) + 1, title, done: false }
      update([...todos, todo], todo.id)
      return todo
    },
    setDone: (id, done) =>
      update(
        todos.map((todo) => (todo.id === id ? { ...todo, done } : todo)),
        id
      ),
    remove: (id) => update(todos.filter((todo) => todo.id !== id)),
    onChange: (listener) => {
      listeners.add(listener)
    }
  }
}
