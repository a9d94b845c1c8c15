/**
 * Our client on our bridge beside the peer's client on the peer's bridge: over the same
 * kind of socket, that of the package `ws` or the one that Node brings along, and ours
 * over `NodeWebSocket`.
 */
import { createFrontendToolsClient as createPeerClient } from "dsh-frontend-tools-client"
import WebSocket from "ws"
import { NodeWebSocket } from "../src/node.ts"
import { createFrontendToolsClient } from "../src/promise.ts"
import { type BridgeUnderTest, startOurs, startPeer } from "./contenders.ts"
import { compare, inFlight, oneAtATime, quantile, type Row } from "./harness.ts"

const applications = ["ws", "platform", "node"].map((namespace) => ({
  namespace,
  key: `key-of-${namespace}`.padEnd(64, "x")
}))

const sockets = { ws: WebSocket, platform: globalThis.WebSocket, node: NodeWebSocket }

const tool = {
  name: "small",
  description: "answers at once",
  parametersSchema: { type: "object", properties: { n: { type: "number" } } },
  readOnly: true,
  execute: async () => ({ ok: true })
}

const connect = async (create: typeof createFrontendToolsClient | typeof createPeerClient, url: string) => {
  const clients = []
  for (const { key, namespace } of applications) {
    const socket = Reflect.get(sockets, namespace)
    const client = create({ url, key, socket })
    await client.connect()
    await client.registerTools([tool])
    clients.push(client)
  }
  return clients
}

/** Calls per second and latency of the pairs. */
export const clientPairs = async (): Promise<ReadonlyArray<Row>> => {
  const ours = await startOurs(applications)
  const peer = await startPeer(applications)
  const clients = [
    ...(await connect(createFrontendToolsClient, ours.url)),
    ...(await connect(createPeerClient, peer.url))
  ]
  const through = (bridge: BridgeUnderTest, application: string) => () => bridge.call(`${application}__small`, { n: 1 })
  const rows: Array<Row> = []
  for (const { of, theirs, title } of [
    { title: "client and bridge (ws)", of: "ws", theirs: "ws" },
    { title: "client and bridge (ours NodeWebSocket)", of: "node", theirs: "ws" },
    { title: "client and bridge (WebSocket of Node)", of: "platform", theirs: "platform" }
  ]) {
    const contenders = [
      { name: "ours", call: through(ours, of) },
      { name: "peer", call: through(peer, theirs) }
    ]
    rows.push(
      await compare(
        `${title}, 64 in flight`,
        "calls/s",
        contenders.map(({ name, call }) => ({ name, round: () => inFlight(call, 20_000, 64) })),
        { rounds: 9 }
      ),
      await compare(
        `${title}, one at a time, p50`,
        "µs",
        contenders.map(({ name, call }) => ({ name, round: async () => quantile(await oneAtATime(call, 2000), 0.5) })),
        { rounds: 15 }
      )
    )
  }
  for (const client of clients) client.disconnect()
  await ours.close()
  await peer.close()
  return rows
}
