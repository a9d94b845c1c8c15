/** The page's connection to its bridge, with its state in sight. */
import { buildClientKeyClipboardText, createFrontendToolsClient, storedClientKey } from "effect-frontend-tools/promise"
import { element } from "./dom.js"

const hints = {
  auth_failed: "No bridge knows this page’s key yet. Copy it and paste it to your model, which registers it.",
  duplicate_connection: "Another tab of this page holds the connection. Close it, and this one takes over."
}

/** Connects, registers the tools and shows how that goes. Gives the client and the key. */
export const connect = ({ bridge, namespace, tools }) => {
  const key = storedClientKey()
  const client = createFrontendToolsClient({ url: bridge, key, retryFirstConnect: true })

  const show = ({ message, namespace: called, reason, status }) => {
    element("badge").dataset.state = status
    element("badge").title = reason ?? ""
    element("state").textContent = status === "connected" ? `connected as ${called}` : status
    element("reason").textContent = status === "connected" ? "The model can use this page." : (hints[reason] ?? message)
    element("reason").dataset.reason = reason ?? ""
    element("retry").hidden = status === "connected"
  }

  element("bridge").textContent = bridge
  element("key").textContent = `${key.slice(0, 4)}…${key.slice(-4)}`
  element("retry").addEventListener("click", () => client.retryNow())
  element("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(buildClientKeyClipboardText({ namespace, key, appName: document.title }))
    element("copy").textContent = "Copied"
  })

  client.onStateChange((_, detail) => show(detail))
  show(client.detail)
  const tell = (text) => {
    element("tools").textContent = text
  }
  client.registerTools(tools).then(
    (names) => tell(names.join(", ")),
    (error) => tell(error.message)
  )
  // That it fails for now is in the state, and it goes on trying.
  client.connect().catch(() => {})
  return { client, key }
}
