/**
 * What the client needs of a WebSocket. The handlers' events are typed so that the
 * platform's `WebSocket`, that of the package `ws` and a test's own all fit.
 */
export interface WebSocketLike {
  send(data: string): void
  close(): void
  onopen: ((event: never) => unknown) | null
  /** Gets the close code and reason, where the socket tells them. */
  onclose: ((event: never) => unknown) | null
  onerror: ((event: never) => unknown) | null
  /** Gets a message as `{ data }`. */
  onmessage: ((event: never) => unknown) | null
}

/** A `WebSocket` constructor. */
export type WebSocketConstructor = new (url: string) => WebSocketLike
