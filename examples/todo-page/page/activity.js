/** Keeps the page's calls in sight: which tool, with what, how it ended and how long it took. */
import { element, make } from "./dom.js"

const SHOWN = 6

/** The tool, with its calls shown. */
export const watched = (tool) => ({
  ...tool,
  execute: async (args, call) => {
    const started = performance.now()
    const show = (outcome, note) => {
      const list = element("calls")
      if (list.querySelector(".none") !== null) list.replaceChildren()
      const took = `${Math.max(1, Math.round(performance.now() - started))} ms`
      const row = make(
        "li",
        {},
        make("code", { textContent: tool.name }),
        make("span", { className: "took", textContent: took }),
        make("span", { className: "with", textContent: note ?? JSON.stringify(args ?? {}) })
      )
      row.dataset.outcome = outcome
      list.prepend(row)
      while (list.children.length > SHOWN) list.lastElementChild.remove()
    }
    try {
      const result = await tool.execute(args, call)
      show("ok")
      return result
    } catch (error) {
      show("failed", error.message)
      throw error
    }
  }
})
