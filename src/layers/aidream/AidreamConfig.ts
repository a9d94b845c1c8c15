import { Context, Duration, Layer } from "effect"

/** Settings of the outbound half. Every time of the contract is here. */
export class AidreamConfig extends Context.Service<
  AidreamConfig,
  {
    /** Where the backend is, with or without a trailing slash; paths of the contract are appended. */
    readonly baseUrl: string
    /** This client's own desktop id: rows bound to it are ours (part 2.6). */
    readonly instanceId: string | undefined
    /** How long an answer to a request may take. */
    readonly attemptTimeout: Duration.Input
    /** How long an open stream may be silent (part 3.6). */
    readonly stallTimeout: Duration.Input
    /** How long a body may stay open after its last meaningful event. */
    readonly terminalGrace: Duration.Input
    /** How long a person has to allow a call (part 6.5). */
    readonly approvalWindow: Duration.Input
    /** How long a drained deployment is asked again (part 7.4). */
    readonly drainWindow: Duration.Input
    /** Requests in total for one post of results. */
    readonly resultAttempts: number
    /** Delay before the second of them; it doubles, plus up to 199 ms of jitter. */
    readonly resultBackoff: Duration.Input
    /** How long a claim outlives a step of its owner (part 8.1). */
    readonly claimTtl: Duration.Input
    /** Retries of a conflicting or unreachable resume (part 8.4). */
    readonly resumeRetries: number
    /** Unit of their delay: 1, 2, 3, ... times this. */
    readonly resumeBackoff: Duration.Input
    /** Call ids remembered so that none runs twice (part 6.2). */
    readonly dedupeCapacity: number
    /** Longest result of a tool, in UTF-16 units of its JSON. */
    readonly maxResultLength: number
    /** Longest text in the context of a request, in UTF-16 units. */
    readonly maxContextText: number
    /** How the model finds out which tools exist; part of the answer to an unknown name. */
    readonly toolHint: string
    /** Namespaces and prefixes of other executors; `undefined` for the contract's own list (part 5.2). */
    readonly foreignNamespaces: ReadonlyArray<string> | undefined
    readonly foreignPrefixes: ReadonlyArray<string> | undefined
  }
>()("effect-frontend-tools/layers/aidream/AidreamConfig") {
  static readonly defaults: Omit<AidreamConfig["Service"], "baseUrl"> = {
    instanceId: undefined,
    attemptTimeout: Duration.seconds(30),
    stallTimeout: Duration.seconds(75),
    terminalGrace: Duration.seconds(30),
    approvalWindow: Duration.minutes(5),
    drainWindow: Duration.minutes(3),
    resultAttempts: 3,
    resultBackoff: Duration.millis(500),
    claimTtl: Duration.seconds(10),
    resumeRetries: 4,
    resumeBackoff: Duration.millis(700),
    dedupeCapacity: 500,
    maxResultLength: 8 * 1024 * 1024,
    maxContextText: 100_000,
    toolHint: "call load_chrome_tools with a category to see what exists",
    foreignNamespaces: undefined,
    foreignPrefixes: undefined
  }

  static readonly layer = (options: Partial<AidreamConfig["Service"]> & { readonly baseUrl: string }) =>
    Layer.succeed(AidreamConfig, { ...AidreamConfig.defaults, ...options })
}
