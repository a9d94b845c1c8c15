/** Bounds of the wait between two attempts, in milliseconds (bridge protocol, part 0). */
export const MIN_DELAY_MILLIS = 1000
export const MAX_DELAY_MILLIS = 30_000

/** How far above its lower bound a wait may lie: clients of one bridge must not come back as one. */
const SPREAD = 1.5

/**
 * Where the waits begin for a bridge that asks for time, and for a key that it does not
 * know yet: a person may register it in a moment.
 */
export const PATIENT_ATTEMPT = 2

/**
 * The wait before the next attempt, in milliseconds: a random one between 1 and 1.5 s
 * after the first failure, doubling up to between 20 and 30 s. `random` is from [0, 1).
 */
export const delayMillis = (failures: number, random: number): number => {
  const longest = Math.min(MAX_DELAY_MILLIS, MIN_DELAY_MILLIS * SPREAD * 2 ** Math.min(failures, 16))
  const shortest = longest / SPREAD
  return Math.round(shortest + random * (longest - shortest))
}
