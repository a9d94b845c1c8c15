import type { FrontendTool, FrontendToolsClient } from "effect-frontend-tools/promise"
import { useEffect, useLayoutEffect, useRef } from "react"

/**
 * Lets a model call a function of a component, for as long as the component is mounted.
 *
 * The function may be a new one in every rendering: a call runs the latest, which sees
 * the latest props and state. The tool is registered again only when what a model reads
 * of it changes, so its schemas may be written in place. The client is one for the
 * application, made outside of its components.
 */
export const useFrontendTool = (client: FrontendToolsClient, tool: FrontendTool): void => {
  const latest = useRef(tool)
  // With the rendering it belongs to: a call must not see a page of tomorrow with a function of yesterday.
  useLayoutEffect(() => {
    latest.current = tool
  })

  const { execute: _, ...spec } = tool
  const text = JSON.stringify(spec)
  useEffect(() => {
    // A mount that StrictMode or a hot reload undoes and does again at once sends nothing.
    const registration = client.registerTool({
      ...JSON.parse(text),
      execute: (args, call) => latest.current.execute(args, call)
    })
    return registration.unregister
  }, [client, text])
}
