import { Effect } from "effect"

/** How long a test waits for real I/O before it says what it waited for. */
const PATIENCE_MILLIS = 3000

/** Waits for real I/O to bring a condition about. Independent of the test clock. */
export const until = (what: string | (() => string), condition: () => boolean): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const began = performance.now()
    const look = () => {
      if (condition()) resume(Effect.void)
      else if (performance.now() - began > PATIENCE_MILLIS)
        resume(Effect.die(new Error(`waited in vain: ${typeof what === "string" ? what : what()}`)))
      else handle = setImmediate(look)
    }
    let handle = setImmediate(look)
    return Effect.sync(() => clearImmediate(handle))
  })
