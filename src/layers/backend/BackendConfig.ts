import { Context, Duration, Layer } from "effect"

/** Settings of the backend. Every duration is read through `Clock`. */
export class BackendConfig extends Context.Service<
  BackendConfig,
  {
    /** Pause between two heartbeats of an open run; the run's lease is renewed with each. 10 seconds. */
    readonly heartbeat: Duration.Input
    /** How long a run whose process is silent keeps its turn. 60 seconds. */
    readonly runLease: Duration.Input
    /**
     * The lease of a run that has handed out its calls and only has to write `paused`.
     * Shorter than a client's patience with `resume_conflict`. 5 seconds.
     */
    readonly windDownLease: Duration.Input
    /** How long a desktop's claim on a pending call holds. 60 seconds. */
    readonly claimLease: Duration.Input
    /** When a delegated call is given up. 30 days. */
    readonly delegationLifetime: Duration.Input
    /** Pause between two sweeps. 30 seconds. */
    readonly sweepInterval: Duration.Input
    /** First pause before a provider is asked again; doubles. 1 second. */
    readonly providerBackoff: Duration.Input
    /** Events a slow reader may be behind before its stream is cut (the run goes on). */
    readonly readerBuffer: number
    /** Largest request body, in bytes. 16 MiB. */
    readonly maxBodyBytes: number
    /** Names no request and no tool can bring into a run. */
    readonly hostExclusions: ReadonlyArray<string>
  }
>()("effect-frontend-tools/layers/backend/BackendConfig") {
  static readonly defaults: BackendConfig["Service"] = {
    heartbeat: Duration.seconds(10),
    runLease: Duration.seconds(60),
    windDownLease: Duration.seconds(5),
    claimLease: Duration.seconds(60),
    delegationLifetime: Duration.days(30),
    sweepInterval: Duration.seconds(30),
    providerBackoff: Duration.seconds(1),
    readerBuffer: 10_000,
    maxBodyBytes: 16 * 1024 * 1024,
    hostExclusions: []
  }

  static readonly layer = (options?: Partial<BackendConfig["Service"]>) =>
    Layer.succeed(BackendConfig, { ...BackendConfig.defaults, ...options })
}
