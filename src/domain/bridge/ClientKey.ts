/**
 * The DSH KEY: 64 hex characters that an application makes for itself and that are
 * its whole identity (bridge protocol, parts 0 and j).
 */
import { Schema } from "effect"
import { Hex } from "effect/encoding"

export const CLIENT_KEY_PATTERN = /^[0-9a-f]{64}$/

/** A key as an application generates it. Keys of the configuration may be any text. */
export const ClientKey = Schema.String.check(
  Schema.isPattern(CLIENT_KEY_PATTERN, { message: `must match ${CLIENT_KEY_PATTERN.source}` })
).pipe(Schema.brand("ClientKey"))
export type ClientKey = typeof ClientKey.Type

const KEY_BYTES = 32

/** A new key from the platform's cryptographic random source. */
export const generateClientKey = (): ClientKey =>
  ClientKey.make(Hex.encode(globalThis.crypto.getRandomValues(new Uint8Array(KEY_BYTES))))

/** The three lines a person pastes to the model so that it can register the application. */
export const buildClientKeyClipboardText = (input: {
  readonly namespace: string
  readonly key: string
  readonly appName?: string | undefined
}): string => {
  const title = input.appName === undefined ? "DSH 前端工具桥接入" : `${input.appName} · DSH 前端工具桥接入`
  return `[${title}]\nnamespace: ${input.namespace}\nkey: ${input.key}`
}
