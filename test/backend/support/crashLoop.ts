import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { readApiError } from "../../../src/domain/aidream/ApiError.ts"

const main = fileURLToPath(new URL("crashServer.ts", import.meta.url))
const tools = [{ kind: "inline", name: "look" }]
const headers = { authorization: "Bearer ada" }

/** A turn that nothing can move on has hung. */
const PATIENCE_MILLIS = 60_000

export interface Server {
  readonly port: number
  /** SIGKILL, and the wait until the process is gone. */
  readonly kill: () => Promise<void>
}

/** Starts the backend on a database. The port is the same every time after the first. */
export const startServer = (database: string, log: string, port = 0): Promise<Server> =>
  new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(process.execPath, [main, database, log, String(port)], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    const gone = new Promise<void>((exited) => child.once("exit", () => exited()))
    child.once("error", reject)
    child.once("exit", () => reject(new Error("the server ended before it listened")))
    child.stdout?.on("data", (chunk: Buffer) => {
      const found = /port (\d+)/.exec(chunk.toString())
      if (found !== null) {
        resolve({
          port: Number(found[1]),
          kill: () => {
            child.kill("SIGKILL")
            return gone
          }
        })
      }
    })
  })

const clientMain = fileURLToPath(new URL("crashClient.ts", import.meta.url))

export interface ClientProcess {
  readonly kill: () => Promise<void>
  /** Whether the process ended by itself, with the turn over. */
  readonly done: Promise<boolean>
}

/** Starts the real client on a turn; it goes on with what is in its folder. */
export const startClientProcess = (
  port: number,
  conversationId: string,
  folder: string,
  log: string
): ClientProcess => {
  const child = spawn(process.execPath, [clientMain, `http://127.0.0.1:${port}`, conversationId, folder, log], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  let said = ""
  child.stdout.on("data", (chunk) => {
    said += String(chunk)
  })
  const gone = new Promise<void>((exited) => child.once("exit", () => exited()))
  return {
    kill: () => {
      child.kill("SIGKILL")
      return gone
    },
    done: gone.then(() => said.includes("done"))
  }
}

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/**
 * One turn, by a client that knows nothing but the contract: it runs what is pending
 * once, answers it as often as needed, and resumes until the turn is over.
 */
export const driveTurn = async (conversationId: string, port: number, onRequest: () => void): Promise<void> => {
  const answers = new Map<string, unknown>()
  const base = `http://127.0.0.1:${port}/ai`
  const conversation = `${base}/conversations/${conversationId}`
  const post = async (url: string, body: unknown) => {
    onRequest()
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    return { status: response.status, text: await response.text() }
  }
  let isStarted = false
  const until = performance.now() + PATIENCE_MILLIS

  while (performance.now() < until) {
    try {
      if (!isStarted) {
        const started = await post(`${base}/agent/any`, {
          conversation_id: conversationId,
          is_new: true,
          user_input: "go",
          tools
        })
        if (started.status !== 200 && readApiError(started.status, started.text).code !== "conversation_exists") {
          throw new Error(started.text)
        }
        isStarted = true
      }
      const listed = await fetch(`${conversation}/pending_calls`, { headers })
      const pending: ReadonlyArray<{ readonly call_id: string; readonly arguments: unknown }> = await listed.json()
      for (const call of pending) {
        if (!answers.has(call.call_id)) answers.set(call.call_id, { saw: call.arguments })
      }
      if (pending.length > 0) {
        await post(`${conversation}/tool_results`, {
          results: pending.map(({ call_id }) => ({ call_id, tool_name: "look", output: answers.get(call_id) }))
        })
      }
      const resumed = await post(`${conversation}/resume`, { tools })
      if (resumed.status === 200) continue
      const refused = readApiError(resumed.status, resumed.text)
      if (refused.code === "not_resumable" && refused.runStatus === "completed") return
      if (refused.code === "not_resumable" || resumed.status >= 500 || resumed.status === 422) {
        throw new TypeError(resumed.text)
      }
      await pause(20)
    } catch (error) {
      if (error instanceof TypeError && error.message !== "fetch failed" && error.message !== "terminated") throw error
      // The server is being killed or restarted: whether the request got through is unknown.
      await pause(20)
    }
  }
  throw new Error(`${conversationId} does not finish`)
}

/** What is wrong with a database after all of its turns have finished. Empty: nothing. */
export const inspect = (
  database: string,
  log: string,
  conversations: ReadonlyArray<string>,
  /** Errors that a kill explains. */
  explained: ReadonlyArray<string> = ["abandoned"]
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const db = new DatabaseSync(database)
  try {
    for (const id of conversations) {
      const report = (text: string) => problems.push(`${id}: ${text}`)
      const turns = db.prepare("SELECT status FROM user_requests WHERE conversation_id = ?").all(id)
      if (turns.length !== 1 || turns[0]?.status !== "completed") report(`turns ${JSON.stringify(turns)}`)

      const messages = db
        .prepare("SELECT position, role, content FROM messages WHERE conversation_id = ? ORDER BY position")
        .all(id)
      messages.forEach(({ position }, index) => {
        if (position !== index) report(`position ${position} at place ${index}`)
      })
      if (messages[0]?.role !== "user" || messages.filter(({ role }) => role === "user").length !== 1) {
        report("the user's message is not there once, first")
      }
      if (!String(messages.at(-1)?.content).includes("finished")) report("the last answer is missing")

      const calls = messages
        .filter(({ role }) => role === "assistant")
        .flatMap(({ content }) => JSON.parse(String(content)).content)
        .filter((part: { readonly type: string }) => part.type === "tool-call")
        .map((part: { readonly id: string }) => part.id)
      const rows = db.prepare("SELECT * FROM tool_calls WHERE conversation_id = ?").all(id)
      if (new Set(calls).size !== calls.length) report("a call id is used twice")
      if (rows.length !== calls.length) report(`${calls.length} calls, ${rows.length} rows`)
      for (const call of calls) {
        const row = rows.find(({ call_id }) => call_id === call)
        if (row?.status !== "completed" && row?.status !== "error") report(`${call} is ${row?.status}`)
        if (row?.status === "error" && !explained.includes(String(row.error_type)))
          report(`${call} failed: ${row.error_type}`)
        if (row?.is_client_delegated === 1 && row.status === "completed") {
          const args = JSON.parse(String(row.arguments))
          if (row.output !== JSON.stringify({ saw: args })) report(`${call} has another answer: ${row.output}`)
        }
      }
    }
  } finally {
    db.close()
  }
  const noted = readFileSync(log, "utf8").split("\n").filter(Boolean)
  if (new Set(noted).size !== noted.length) problems.push("a server tool ran twice for one call")
  return problems
}
