/** For trying the page without a model: the example's server plays the host, and the person approves here. */
import { element, make } from "./dom.js"

const post = async (path, body) => {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  return response.json()
}

const samples = {
  list_todos: "{}",
  find_todos: '{ "text": "train" }',
  add_todo: '{ "title": "Buy coffee" }',
  set_done: '{ "id": 2, "done": true }'
}

/** Shows the question and waits for the answer. */
const ask = (label, args) =>
  new Promise((resolve) => {
    const dialog = element("approval")
    element("asked-tool").textContent = label
    element("asked-arguments").textContent = JSON.stringify(args, null, 2)
    dialog.returnValue = "deny"
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "allow"), { once: true })
    dialog.showModal()
  })

/** Offers to register the page's key, and to call its tools as a model would. */
export const play = ({ client, key, namespace, tools }) => {
  const admit = element("admit")
  const choice = element("tool")
  const args = element("arguments")
  const answer = element("answer")

  const answered = (outcome) => {
    answer.hidden = false
    answer.dataset.outcome = outcome.ok ? "ok" : "failed"
    answer.textContent = outcome.ok ? JSON.stringify(outcome.result) : outcome.message
  }

  client.onStateChange((status, { reason }) => {
    element("play").hidden = status !== "connected"
    admit.hidden = reason !== "auth_failed"
  })
  admit.addEventListener("click", async () => {
    admit.disabled = true
    const outcome = await post("admit", { key })
    admit.disabled = false
    if (outcome.ok) client.retryNow()
    else element("reason").textContent = outcome.message
  })

  choice.append(
    ...tools.map(({ name, readOnly }) =>
      make("option", { value: name, textContent: readOnly ? name : `${name} (asks)` })
    )
  )
  choice.addEventListener("change", () => {
    args.value = samples[choice.value]
  })
  element("call").addEventListener("submit", async (event) => {
    event.preventDefault()
    let given
    try {
      given = JSON.parse(args.value)
    } catch {
      return answered({ ok: false, message: "the arguments are not JSON" })
    }
    const call = { tool: choice.value, arguments: given }
    const writes = tools.some(({ name, readOnly }) => name === call.tool && !readOnly)
    answered(await post("call", { ...call, allowed: writes && (await ask(`${namespace}.${call.tool}`, given)) }))
  })
}
