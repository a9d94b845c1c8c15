/**
 * `npm run bench`: our bridge beside the peer's and a bare WebSocket echo, in one run.
 * Prints a table and writes `bench/results.json`.
 */
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { cpus } from "node:os"
import * as PeerPlugin from "dsh-frontend-tools-bridge"
import { createFrontendToolsClient } from "dsh-frontend-tools-client"
import WebSocket, { WebSocketServer } from "ws"
import * as OurPlugin from "../src/index.ts"
import { clientPairs } from "./client.ts"
import { type BridgeUnderTest, type Client, startInHarness, startOurs, startPeer } from "./contenders.ts"
import { compare, inFlight, oneAtATime, quantile, type Row } from "./harness.ts"

const clientsOf = (count: number): ReadonlyArray<Client> =>
  Array.from({ length: count }, (_, i) => ({ namespace: `app${i}`, key: `key-of-app-${i}`.padEnd(64, "x") }))

const [first] = clientsOf(1)
if (first === undefined) throw new Error("no client")

const readTool = (name: string, result: unknown) => ({
  name,
  description: "answers at once",
  parametersSchema: { type: "object", properties: { n: { type: "number" } } },
  readOnly: true,
  execute: async () => result
})

const payload = (bytes: number) => ({ text: "x".repeat(bytes) })

/** The peer's own client with the tools of all call cases, on a bridge. */
const connect = async (bridge: Pick<BridgeUnderTest, "url">) => {
  const client = createFrontendToolsClient({
    url: bridge.url,
    key: first.key,
    reconnect: false,
    socket: WebSocket as never
  })
  await client.connect()
  await client.registerTools([
    readTool("small", { ok: true }),
    readTool("kb1", payload(1024)),
    readTool("kb64", payload(64 * 1024)),
    readTool("mb1", payload(1024 * 1024))
  ])
  return client
}

/** A bare WebSocket round trip with a frame of the same size. */
const startEcho = async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false })
  await new Promise((resolve) => server.on("listening", resolve))
  server.on("connection", (socket) => socket.on("message", (data) => socket.send(data.toString())))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const socket = new WebSocket(`ws://127.0.0.1:${port}`)
  await new Promise((resolve) => socket.on("open", resolve))
  const waiting: Array<(text: string) => void> = []
  socket.on("message", (data) => waiting.shift()?.(data.toString()))
  const frame = JSON.stringify({ type: "call", callId: crypto.randomUUID(), name: "small", args: { n: 1 } })
  return {
    call: () =>
      new Promise<unknown>((resolve) => {
        waiting.push(resolve)
        socket.send(frame)
      }),
    close: () => {
      socket.terminate()
      server.close()
    }
  }
}

const rows: Array<Row> = []

const calls = async () => {
  const bridges = { ours: await startOurs([first]), peer: await startPeer([first]) }
  const clients = [await connect(bridges.ours), await connect(bridges.peer)]
  const echo = await startEcho()
  const contenders = (tool: string) => [
    { name: "ours", call: () => bridges.ours.call(`app0__${tool}`, { n: 1 }) },
    { name: "peer", call: () => bridges.peer.call(`app0__${tool}`, { n: 1 }) }
  ]
  const withEcho = [...contenders("small"), { name: "echo", call: echo.call }]

  const tails = new Map<string, Array<number>>()
  rows.push(
    await compare(
      "one at a time, p50",
      "µs",
      withEcho.map(({ name, call }) => ({
        name,
        round: async () => {
          const latencies = await oneAtATime(call, 2000)
          tails.set(name, [...(tails.get(name) ?? []), quantile(latencies, 0.99)])
          return quantile(latencies, 0.5)
        }
      })),
      { rounds: 15 }
    )
  )
  rows.push({
    case: "one at a time, p99",
    unit: "µs",
    medians: Object.fromEntries(Array.from(tails, ([name, samples]) => [name, quantile(samples, 0.5)]))
  })
  rows.push(
    await compare(
      "64 in flight",
      "calls/s",
      withEcho.map(({ name, call }) => ({ name, round: () => inFlight(call, 20_000, 64) })),
      { rounds: 11 }
    )
  )
  for (const [tool, label, count] of [
    ["kb1", "results of 1 KB, 64 in flight", 5000],
    ["kb64", "results of 64 KB, 8 in flight", 500],
    ["mb1", "results of 1 MB, 2 in flight", 40]
  ] as const) {
    const width = Number(/(\d+) in flight/.exec(label)?.[1])
    rows.push(
      await compare(
        label,
        "calls/s",
        contenders(tool).map(({ name, call }) => ({ name, round: () => inFlight(call, count, width) })),
        { rounds: 5 }
      )
    )
  }
  for (const client of clients) client.disconnect()
  echo.close()
  await bridges.ours.close()
  await bridges.peer.close()
}

/** A cost per operation, which has to be the same at 1,000 clients as at 10. */
const lookups = async () => {
  const counts = [10, 1000] as const
  const started = await Promise.all(
    counts.flatMap((count) => {
      const clients = clientsOf(count)
      return [
        { who: "ours", start: startOurs },
        { who: "peer", start: startPeer }
      ].map(async ({ start, who }) => {
        const bridge = await start(clients)
        return { bridge, count, keys: clients.map(({ key }) => key), session: await connect(bridge), who }
      })
    })
  )
  const operations = 20_000
  const each = (run: (i: number) => unknown) => async () => {
    const start = performance.now()
    for (let i = 0; i < operations; i++) run(i)
    return ((performance.now() - start) * 1e6) / operations
  }
  const scaling = async (name: string, cost: (of: (typeof started)[number]) => () => Promise<number>) => {
    const row = await compare(
      name,
      "ns",
      started.map((of) => ({ name: `${of.who} ${of.count}`, round: cost(of) })),
      { rounds: 15 }
    )
    for (const count of counts) {
      const { [`ours ${count}`]: ours = Number.NaN, [`peer ${count}`]: peer = Number.NaN } = row.medians
      rows.push({ case: `${name}, ${count.toLocaleString("en")} clients`, unit: "ns", medians: { ours, peer } })
    }
  }
  await scaling("authenticate", ({ bridge, keys }) => each((i) => bridge.authenticate(keys[i % keys.length] ?? "")))
  await scaling("class of a tool", ({ bridge }) => each(() => bridge.categoryOf("app0__small")))
  for (const { bridge, session } of started) {
    session.disconnect()
    await bridge.close()
  }
}

/** Each in a process of its own, so that one contender's heap is not the other's. Its last line has the figures. */
const inProcess = (script: string, ...args: ReadonlyArray<string>): Record<string, number> =>
  JSON.parse(
    execFileSync("node", ["--expose-gc", new URL(script, import.meta.url).pathname, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"]
    })
      .trim()
      .split("\n")
      .at(-1) ?? "{}"
  )

const sessions = async () => {
  const seen = new Map<string, Array<Record<string, number>>>()
  const round = (name: string) => async () => {
    const result = inProcess("./sessions.ts", name, "1000", "10")
    seen.set(name, [...(seen.get(name) ?? []), result])
    return result.millis ?? Number.NaN
  }
  const contenders = ["ours", "peer"].map((name) => ({ name, round: round(name) }))
  rows.push(await compare("1,000 sessions, 10 tools each: time", "ms", contenders, { rounds: 5, warmups: 0 }))
  const memory = Object.fromEntries(
    Array.from(seen, ([name, results]) => [
      name,
      quantile(
        results.map(({ bytes }) => bytes ?? Number.NaN),
        0.5
      ) / 1024
    ])
  )
  rows.push({ case: "1,000 sessions, 10 tools each: memory", unit: "KB/session", medians: memory })
  console.log("memory per session", memory)
}

const registering = async () => {
  for (const count of ["2500", "5000", "10000"]) {
    rows.push(
      await compare(
        `one session registers ${count} tools`,
        "µs/tool",
        ["ours", "peer"].map((name) => ({
          name,
          round: async () =>
            ((inProcess("./sessions.ts", name, "1", count).millis ?? Number.NaN) * 1000) / Number(count)
        })),
        { rounds: 3, warmups: 0 }
      )
    )
  }
}

const clients = async () => {
  rows.push(...(await clientPairs()))
}

/** Through the whole pipeline of the real harness, each bridge as its plugin. */
const inHarness = async () => {
  const bridges = { ours: await startInHarness(OurPlugin, first), peer: await startInHarness(PeerPlugin, first) }
  const clients = [await connect(bridges.ours), await connect(bridges.peer)]
  const contenders = Object.entries(bridges).map(([name, { call }]) => ({
    name,
    call: () => call("app0__small", { n: 1 })
  }))
  rows.push(
    await compare(
      "in DSH: one at a time, p50",
      "µs",
      contenders.map(({ call, name }) => ({ name, round: async () => quantile(await oneAtATime(call, 500), 0.5) })),
      { rounds: 25 }
    ),
    await compare(
      "in DSH: 64 in flight",
      "calls/s",
      contenders.map(({ call, name }) => ({ name, round: () => inFlight(call, 3000, 64) })),
      { rounds: 15 }
    )
  )
  for (const client of clients) client.disconnect()
  for (const { close } of Object.values(bridges)) await close()
  const packages = { ours: "effect-frontend-tools", peer: "dsh-frontend-tools-bridge" }
  rows.push(
    await compare(
      "in DSH: loading the plugin",
      "ms",
      Object.entries(packages).map(([name, plugin]) => ({
        name,
        round: async () => inProcess("./harness-load.ts", plugin).millis ?? Number.NaN
      })),
      { rounds: 7, warmups: 1 }
    )
  )
}

/** The reader of a remote backend's stream, beside `JSON.parse` of the same lines. */
const decoding = async () => {
  const { parse = Number.NaN, ratio = Number.NaN, reader = Number.NaN } = inProcess("./aidream-decode.ts", "json")
  rows.push(
    { case: "decode 10 MB of events", unit: "ms", medians: { ours: reader } },
    { case: "parse the same lines", unit: "ms", medians: { ours: parse } },
    { case: "decode beside parse", unit: "×", medians: { ours: ratio } }
  )
}

/** The backend half has figures of its own, which it prints. */
const backend = async () => {
  execFileSync("node", ["--expose-gc", new URL("./backend.ts", import.meta.url).pathname], { stdio: "inherit" })
}

const toolkit = async () => {
  const { generation = Number.NaN, memory = Number.NaN, toolkit: added = Number.NaN } = inProcess("./toolkit.ts")
  const row = (name: string, ours: number): Row => ({ case: name, unit: "µs", medians: { ours } })
  rows.push(
    row("a call in memory, on the memory host", memory),
    row("the toolkit adds to it", added),
    row("the toolkit adds to it, with the stream of a generation", generation)
  )
}

const cases: Readonly<Record<string, () => Promise<void>>> = {
  calls,
  clients,
  inHarness,
  lookups,
  sessions,
  registering,
  decoding,
  backend,
  toolkit
}
const chosen = process.argv.slice(2)
for (const [name, run] of Object.entries(cases)) if (chosen.length === 0 || chosen.includes(name)) await run()

const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, node ${process.version}`
if (chosen.length === 0) {
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(
    new URL("./results.json", import.meta.url),
    `${JSON.stringify({ date, machine, rows }, undefined, 2)}\n`
  )
}

const digits = (value: number | undefined) => (value === undefined ? "" : value.toPrecision(4))
console.log(
  `\n${machine}\n\n| case | ours | peer | ours / peer | bare echo | unit |\n| --- | --: | --: | --: | --: | --- |`
)
for (const { case: name, medians, unit } of rows) {
  const ratio = medians.ours !== undefined && medians.peer !== undefined ? medians.ours / medians.peer : undefined
  console.log(
    `| ${name} | ${digits(medians.ours)} | ${digits(medians.peer)} | ${ratio?.toFixed(2) ?? ""} | ${digits(medians.echo)} | ${unit} |`
  )
}
process.exit(0)
