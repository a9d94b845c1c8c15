/** Shows the todos, and lets a person change them. */
import { element, make } from "./dom.js"

export const showTodos = (todos) => {
  const list = element("todos")
  const form = element("new")
  // A row stays the same element: whoever has the focus in it keeps it.
  const rows = new Map()

  const makeRow = ({ id, title }) => {
    const box = make("input", { type: "checkbox", id: `todo-${id}` })
    box.addEventListener("change", () => todos.setDone(id, box.checked))
    const label = make("label", { htmlFor: box.id, textContent: title })
    const remove = make("button", {
      type: "button",
      className: "remove",
      ariaLabel: `Remove “${title}”`,
      textContent: "×"
    })
    remove.addEventListener("click", () => todos.remove(id))
    return { box, item: make("li", {}, box, label, remove) }
  }

  const show = (all, changed) => {
    for (const [id, { item }] of rows) {
      if (all.some((todo) => todo.id === id)) continue
      item.remove()
      rows.delete(id)
    }
    for (const todo of all) {
      if (!rows.has(todo.id)) {
        rows.set(todo.id, makeRow(todo))
        list.append(rows.get(todo.id).item)
      }
      const { box, item } = rows.get(todo.id)
      box.checked = todo.done
      item.dataset.done = String(todo.done)
      item.classList.toggle("changed", todo.id === changed)
    }
    const open = all.filter(({ done }) => !done).length
    element("count").textContent =
      all.length === 0 ? "Nothing to do. Lovely." : `${open} open, ${all.length - open} done`
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault()
    const title = form.elements.title.value.trim()
    if (title === "") return
    todos.add(title)
    form.reset()
  })
  todos.onChange(show)
  show(todos.all())
}
