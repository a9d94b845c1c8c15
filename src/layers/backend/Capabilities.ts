import { Context, Effect, Layer, Result, Schema, SchemaIssue } from "effect"
import { isJsonObject, type JsonObject } from "../../domain/aidream/Absent.ts"
import {
  BROWSER_DOM,
  BrowserDomState,
  type ClientContext,
  DESKTOP_NATIVE,
  DesktopNativeState
} from "../../domain/aidream/Envelope.ts"
import type { Identity } from "./Authentication.ts"
import { CHROME_EXTENSION, MATRX_LOCAL, MATRX_USER } from "./Executor.ts"
import type { Problem } from "./Refusal.ts"

/** Something a client can say it is. */
export interface Capability {
  readonly name: string
  /** Which executor is live while it is declared. */
  readonly executor?: string | undefined
  /** What its state must look like. Unknown keys are kept. */
  readonly state?: Schema.ConstraintDecoder<JsonObject> | undefined
  /** Refused for guests. */
  readonly usersOnly?: boolean | undefined
  /** Tools every run of such a client gets, first in the list. */
  readonly alwaysOn?: ReadonlyArray<string> | undefined
}

/** The name of the tool that loads categories of browser tools. */
export const LOAD_CHROME_TOOLS = "load_chrome_tools"

export const browserDom: Capability = {
  name: BROWSER_DOM,
  executor: CHROME_EXTENSION,
  state: BrowserDomState,
  alwaysOn: [LOAD_CHROME_TOOLS]
}

export const desktopNative: Capability = {
  name: DESKTOP_NATIVE,
  executor: MATRX_LOCAL,
  state: DesktopNativeState,
  usersOnly: true
}

/** What a client is, after its envelope was checked. */
export interface ResolvedClient {
  readonly capabilities: ReadonlyArray<Capability>
  /** Checked states of the declared capabilities, unknown keys included. */
  readonly state: ReadonlyMap<string, JsonObject>
  /** Names of the live executors. */
  readonly executors: ReadonlyArray<string>
  readonly mayAdminister: boolean
}

/** What the backend knows of clients' capabilities (part 4). */
export class Capabilities extends Context.Service<
  Capabilities,
  {
    /** Checks an envelope; every problem is listed. */
    readonly resolve: (
      client: ClientContext | null | undefined,
      identity: Identity
    ) => { readonly client: ResolvedClient; readonly problems: ReadonlyArray<Problem> }
  }
>()("effect-frontend-tools/layers/backend/Capabilities") {
  /**
   * The two capabilities of the contract and those of the embedding team.
   * `surfaceExecutor` says which executor a client's `surface` stands for; by default
   * `web` and what starts with `web` is a web page.
   */
  static readonly layer = (options?: {
    readonly capabilities?: ReadonlyArray<Capability> | undefined
    readonly surfaceExecutor?: ((surface: string) => string | undefined) | undefined
  }) =>
    Layer.effect(
      Capabilities,
      Effect.sync(() => {
        const known = new Map(
          [browserDom, desktopNative, ...(options?.capabilities ?? [])].map((each) => [
            each.name,
            { ...each, read: reader(each) }
          ])
        )
        const surfaceExecutor = options?.surfaceExecutor ?? webSurface

        return Capabilities.of({
          resolve: (client, identity) => {
            const problems: Array<Problem> = []
            const report = (message: string) => problems.push({ code: "client_capability_resolution_failed", message })
            const capabilities: Array<Capability> = []
            const state = new Map<string, JsonObject>()
            const executors = new Set<string>()

            for (const name of new Set(client?.capabilities ?? [])) {
              const capability = known.get(name)
              if (capability === undefined) {
                report(`capability "${name}" is not known here`)
                continue
              }
              if (capability.usersOnly === true && identity.kind !== "user") {
                report(`capability "${name}" needs a signed-in user`)
              }
              const sent = client?.state[name]
              if (sent !== undefined) {
                const read = capability.read(sent)
                if (Result.isSuccess(read)) state.set(name, read.success)
                else for (const problem of read.failure) report(`state of "${name}": ${problem}`)
              }
              capabilities.push(capability)
              if (capability.executor !== undefined) executors.add(capability.executor)
            }
            const surface = client?.surface?.trim()
            const page = surface ? surfaceExecutor(surface) : undefined
            if (page !== undefined) executors.add(page)

            return {
              client: {
                capabilities,
                state,
                executors: Array.from(executors),
                mayAdminister: identity.mayAdminister !== false
              },
              problems
            }
          }
        })
      })
    )
}

/** The state of a browser, if the client is one and sent it. */
export const browserStateOf = (client: ResolvedClient): BrowserDomState | undefined => {
  const state = client.state.get(BROWSER_DOM)
  return isBrowserState(state) ? state : undefined
}

const isBrowserState = Schema.is(BrowserDomState)

/** The desktop that desktop-bound calls of a run go to (part 4.3). `undefined`: any of the user's. */
export const targetInstance = (client: ResolvedClient, requested: string | null | undefined): string | undefined => {
  const state = client.state.get(DESKTOP_NATIVE)
  const candidates = [requested, state?.target_instance_id, state?.selected_target_instance_id, state?.instance_id]
  return candidates.find((value): value is string => typeof value === "string" && value !== "")
}

const webSurface = (surface: string) => (/^web\b/.test(surface) || surface === MATRX_USER ? MATRX_USER : undefined)

type Read = (state: JsonObject) => Result.Result<JsonObject, ReadonlyArray<string>>

const issues = SchemaIssue.makeFormatterStandardSchemaV1()

const reader = (capability: Capability): Read => {
  if (capability.state === undefined) return Result.succeed
  const decode = Schema.decodeUnknownResult(capability.state, { errors: "all" })
  return (state) =>
    Result.mapBoth(decode(state), {
      onSuccess: (decoded) => (isJsonObject(decoded) ? decoded : state),
      onFailure: (error) =>
        issues(error.issue).issues.map(({ path, message }) =>
          [path?.map(String).join("."), message].filter(Boolean).join(": ")
        )
    })
}
