/**
 * `node --expose-gc bench/client.ts`: our client on our bridge beside the peer's client on
 * the peer's bridge, in interleaved rounds.
 */
import { createFrontendToolsClient as createPeerClient } from "dsh-frontend-tools-client"
import WebSocket from "ws"
import { createFrontendToolsClient } from "../src/promise.ts"
import { startOurs, startPeer } from "./contenders.ts"
import { compare, inFlight, oneAtATime, quantile } from "./harness.ts"

const application = { namespace: "app0", key: "key-of-app-0".padEnd(64, "x") }

const tool = {
  name: "small",
  description: "answers at once",
  parametersSchema: { type: "object", properties: { n: { type: "number" } } },
  readOnly: true,
  execute: async () => ({ ok: true })
}

const ours = await startOurs([application])
const peer = await startPeer([application])
const client = createFrontendToolsClient({ url: ours.url, key: application.key, socket: WebSocket })
const peerClient = createPeerClient({ url: peer.url, key: application.key, socket: WebSocket as never })
await client.connect()
await client.registerTools([tool])
await peerClient.connect()
await peerClient.registerTools([tool])

const contenders = [
  { name: "ours", call: () => ours.call("app0__small", { n: 1 }) },
  { name: "peer", call: () => peer.call("app0__small", { n: 1 }) }
]

const ratio = ({ medians }: { readonly medians: Readonly<Record<string, number>> }) =>
  ((medians.ours ?? Number.NaN) / (medians.peer ?? Number.NaN)).toFixed(2)

const many = await compare(
  "client and bridge, 64 in flight",
  "calls/s",
  contenders.map(({ name, call }) => ({ name, round: () => inFlight(call, 20_000, 64) })),
  { rounds: 11 }
)
const one = await compare(
  "client and bridge, one at a time, p50",
  "µs",
  contenders.map(({ name, call }) => ({ name, round: async () => quantile(await oneAtATime(call, 2000), 0.5) })),
  { rounds: 15 }
)
console.log(`ours / peer: 64 in flight ${ratio(many)} (at least 2.5), one at a time ${ratio(one)} (at most 1)`)

client.disconnect()
peerClient.disconnect()
await ours.close()
await peer.close()
process.exit(0)
