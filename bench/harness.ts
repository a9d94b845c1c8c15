/**
 * Rounds of all contenders are interleaved, so that a busy moment of the machine hits
 * each of them alike; what counts is the median over the rounds, and its ratio to the
 * peer of the same run.
 */

export interface Contender {
  readonly name: string
  /** Runs one round and returns its measure. */
  readonly round: () => Promise<number>
}

export interface Row {
  readonly case: string
  readonly unit: string
  readonly medians: Readonly<Record<string, number>>
}

export const quantile = (samples: ReadonlyArray<number>, at: number): number => {
  const sorted = Array.from(samples).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN
}

/** Runs the contenders round by round and returns the median of each. */
export const compare = async (
  name: string,
  unit: string,
  contenders: ReadonlyArray<Contender>,
  { rounds = 7, warmups = 2 }: { readonly rounds?: number; readonly warmups?: number } = {}
): Promise<Row> => {
  for (let i = 0; i < warmups; i++) for (const { round } of contenders) await round()
  const samples = contenders.map((): Array<number> => [])
  for (let i = 0; i < rounds; i++) {
    for (const [index, { round }] of contenders.entries()) {
      // The garbage of the previous contender is not charged to this one.
      globalThis.gc?.()
      samples[index]?.push(await round())
    }
  }
  const medians = Object.fromEntries(
    contenders.map((contender, i) => [contender.name, quantile(samples[i] ?? [], 0.5)])
  )
  const row = { case: name, unit, medians }
  console.log(
    `${name.padEnd(44)} ${Object.entries(medians)
      .map(([contender, median]) => `${contender} ${median.toPrecision(4)}`)
      .join("   ")}   ${unit}`
  )
  return row
}

/** Calls one after the other; returns the latencies in microseconds. */
export const oneAtATime = async (call: () => Promise<unknown>, calls: number): Promise<ReadonlyArray<number>> => {
  const latencies: Array<number> = []
  for (let i = 0; i < calls; i++) {
    const start = performance.now()
    await call()
    latencies.push((performance.now() - start) * 1000)
  }
  return latencies
}

/** Keeps `width` calls in flight; returns calls per second. */
export const inFlight = async (call: () => Promise<unknown>, calls: number, width: number): Promise<number> => {
  let left = calls
  const start = performance.now()
  const lane = async () => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: width }, lane))
  return calls / ((performance.now() - start) / 1000)
}
