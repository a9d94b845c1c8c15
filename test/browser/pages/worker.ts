/** A service worker that is an application: it connects when a page of its site hands it the key. */
import { createFrontendToolsClient } from "effect-frontend-tools/promise"

addEventListener("message", (event) => {
  const { key, url } = event.data
  const [port] = event.ports
  const client = createFrontendToolsClient({ url, key })
  client.onStateChange((state) => port?.postMessage(state))
  client.registerTools([
    {
      name: "where",
      description: "Says where it runs.",
      parametersSchema: { type: "object" },
      readOnly: true,
      execute: () => ({ scope: globalThis.constructor.name, document: "document" in globalThis })
    }
  ])
  client.connect()
})
