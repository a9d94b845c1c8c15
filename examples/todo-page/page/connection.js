/** The page's connection to its bridge, with its state in sight. */
import { buildClientKeyClipboardText, createFrontendToolsClient, storedClientKey } from "effect-frontend-tools/promise"
import { element, make } from "./dom.js"

/** Reasons in a person's words, where there is something to do about them here. */
const reasons = {
  auth_failed: {
    short: "key not registered",
    long: "No bridge knows this page’s key yet. Copy it and paste it to your model, which registers it."
  },
  duplicate_connection: {
    short: "another tab is connected",
    long: "Another tab of this page holds the connection. When you close it, this one takes over."
  },
  unreachable: { short: "no bridge there" },
  closed: { short: "connection lost" }
}

const badgeText = ({ namespace, reason, status }) => {
  if (status === "connected") return `connected as ${namespace}`
  return reason === undefined ? status : `${status}: ${reasons[reason]?.short ?? reason}`
}

/** Connects, registers the tools and shows how that goes. Gives the client and the key. */
export const connect = ({ bridge, namespace, tools }) => {
  const key = storedClientKey()
  const client = createFrontendToolsClient({ url: bridge, key, retryFirstConnect: true })

  const show = (detail) => {
    const { message, reason, status } = detail
    element("badge").dataset.state = status
    element("state").textContent = badgeText(detail)
    element("reason").textContent =
      status === "connected" ? "A model can use this page." : (reasons[reason]?.long ?? message ?? "")
    element("retry").hidden = reason === undefined
  }
  const showTools = (...texts) =>
    element("tools").replaceChildren(...texts.map((textContent) => make("code", { textContent })))

  element("bridge").textContent = bridge
  element("key").textContent = `••••••••${key.slice(-4)}`
  element("retry").addEventListener("click", () => client.retryNow())
  // Whoever comes back has often just registered the key, or started the bridge.
  addEventListener("focus", () => client.retryNow())
  element("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(buildClientKeyClipboardText({ namespace, key, appName: "Todos" }))
    element("copy").textContent = "Copied"
  })

  client.onStateChange((_, detail) => show(detail))
  show(client.detail)
  client.registerTools(tools).then(
    (names) => showTools(...names),
    (error) => showTools(error.message)
  )
  // That it fails for now is in the state, and it goes on trying.
  client.connect().catch(() => {})
  return { client, key }
}
