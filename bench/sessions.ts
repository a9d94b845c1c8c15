/** `sessions.ts ours|peer SESSIONS TOOLS`: opens sessions that register tools; prints time and memory as JSON. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import WebSocket from "ws"
import { startOurs, startPeer } from "./contenders.ts"

const [who = "ours", sessions = "1000", tools = "10", url] = process.argv.slice(2)
const clients = Array.from({ length: Number(sessions) }, (_, i) => ({
  namespace: `app${i}`,
  key: `key-of-app-${i}`.padEnd(64, "x")
}))

const batch = JSON.stringify({
  type: "register",
  tools: Array.from({ length: Number(tools) }, (_, i) => ({
    name: `tool_${i}`,
    description: "one of many",
    parametersSchema: { type: "object", properties: { n: { type: "number" } } },
    readOnly: true
  }))
})

if (url !== undefined) {
  // The other process: the applications, whose memory is not the bridge's.
  const start = performance.now()
  for (let i = 0; i < clients.length; i += 50) {
    await Promise.all(
      clients.slice(i, i + 50).map(
        ({ key }) =>
          new Promise<void>((resolve) => {
            const socket = new WebSocket(url)
            socket.on("open", () => socket.send(JSON.stringify({ type: "hello", protocol: 5, key })))
            socket.on("message", (data) => {
              const { type } = JSON.parse(String(data))
              if (type === "welcome") socket.send(batch)
              if (type === "registered") resolve()
              if (type === "ping") socket.send('{"type":"pong"}')
            })
          })
      )
    )
  }
  console.log(performance.now() - start)
  process.stdin.resume()
} else {
  const bridge = await (who === "ours" ? startOurs : startPeer)(clients)
  const heap = async () => {
    for (let i = 0; i < 4; i++) {
      globalThis.gc?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const { external, heapUsed } = process.memoryUsage()
    return heapUsed + external
  }
  const before = await heap()
  const applications = spawn("node", [import.meta.filename, who, sessions, tools, bridge.url], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  const [line] = await once(createInterface(applications.stdout), "line")
  const bytes = ((await heap()) - before) / clients.length
  console.log(JSON.stringify({ millis: Number(line), bytes }))
  applications.kill()
  await once(applications, "close")
  process.exit(0)
}
