import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** How a program ended, and all it said. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A running program, killed when the scope closes. */
export const startProgram = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  cwd: string = root
) {
  const child = spawn(process.execPath, args, { cwd, env: { PATH: process.env.PATH, ...env } })
  let stdout = ""
  let stderr = ""
  let wake: (() => void) | undefined
  child.stdout.on("data", (chunk) => {
    stdout += chunk
    wake?.()
  })
  child.stderr.on("data", (chunk) => {
    stderr += chunk
    wake?.()
  })
  const closed = new Promise<Ended>((resolve) =>
    child.on("close", (code) => {
      resolve({ code, stdout, stderr })
      wake?.()
    })
  )
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => {
      child.kill("SIGKILL")
      return closed
    })
  )
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    ended: Effect.promise(() => closed),
    /** Waits until what the program said satisfies the predicate. Dies when it ends before. */
    until: (said: (stdout: string, stderr: string) => boolean) =>
      Effect.callback<void>((resume) => {
        const look = () => {
          if (said(stdout, stderr)) {
            wake = undefined
            resume(Effect.void)
          } else if (child.exitCode !== null) {
            resume(Effect.die(new Error(`ended with ${child.exitCode}: ${stdout}${stderr}`)))
          }
        }
        wake = look
        look()
      })
  }
})

/** Runs a program to its end. */
export const runProgram = (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>, cwd?: string) =>
  Effect.scoped(Effect.flatMap(startProgram(args, env, cwd), ({ ended }) => ended))
