/** What a client in Node can use beside the SDK, which itself runs everywhere. */
export { NodeWebSocket } from "./layers/client/NodeWebSocket.ts"
