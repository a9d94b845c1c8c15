/** Shows the todos, and lets a person change them. */
import { element, make } from "./dom.js"

export const showTodos = (todos) => {
  const list = element("todos")
  const form = element("new")

  const row = ({ done, id, title }, changed) => {
    const box = make("input", { type: "checkbox", id: `todo-${id}`, checked: done })
    box.addEventListener("change", () => todos.setDone(id, box.checked))
    const remove = make("button", { className: "remove", ariaLabel: `Remove “${title}”`, textContent: "×" })
    remove.addEventListener("click", () => todos.remove(id))
    const label = make("label", { htmlFor: box.id, textContent: title })
    const item = make("li", { className: changed ? "changed" : "" }, box, label, remove)
    item.dataset.done = String(done)
    return item
  }

  const show = (all, changed) => {
    list.replaceChildren(...all.map((todo) => row(todo, todo.id === changed)))
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
