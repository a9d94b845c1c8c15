/** A run's stream as a backend sends it: mostly text, some tools, records and what only newer clients know. */

const WORDS = "the run of a model that reads, thinks and writes — über alles Mögliche, 世界 too".split(" ")

const text = (i: number, words: number) =>
  Array.from({ length: words }, (_, n) => WORDS[(i * 7 + n * 3) % WORDS.length]).join(" ")

const toolEvent = (i: number, event: string, data: unknown) => ({
  event: "tool_event",
  data: { event, call_id: `call_${i}`, tool_name: "forms__fill_form", timestamp: 1_767_225_600 + i, message: "", data }
})

/** The line of a place in the stream. Of a hundred, about eighty are pieces of text. */
const lineAt = (i: number): object => {
  switch (i % 100) {
    case 3:
      return {
        event: "heartbeat",
        data: { timestamp: 1_767_225_600 + i, seq: i, late_by_seconds: 0.01 },
        stream_seq: i + 1
      }
    case 13:
      return { event: "phase", data: { phase: "generating" } }
    case 23:
    case 73:
      return toolEvent(i, "tool_started", {
        arguments: { form: "checkout", values: { name: text(i, 3), street: text(i, 5) } }
      })
    case 24:
    case 74:
      return toolEvent(i, "tool_progress", { percent: i % 100, metadata: { step: text(i, 4) } })
    case 25:
      return toolEvent(i, "tool_completed", {
        result: { filled: Array.from({ length: 12 }, (_, n) => ({ field: `f${n}`, value: text(i + n, 6), ok: true })) }
      })
    case 26:
      return toolEvent(i, "tool_delegated", { arguments: { selector: "#pay", value: text(i, 8) } })
    case 33:
      return {
        event: "record_reserved",
        data: {
          db_project: "main",
          table: "tool_call",
          record_id: `5d1c7c1e-0000-4000-8000-${String(i).padStart(12, "0")}`,
          status: "pending",
          parent_refs: { call_id: `call_${i}`, user_request_id: "5d1c7c1e-0000-4000-8000-000000000000" },
          metadata: {}
        }
      }
    case 34:
      return {
        event: "record_update",
        data: {
          db_project: "main",
          table: "tool_call",
          record_id: `r${i}`,
          status: "completed",
          metadata: { tokens: i }
        }
      }
    case 43:
      return {
        event: "resource_changed",
        data: {
          kind: "active_tools",
          action: "invalidated",
          resource_id: "5d1c7c1e-0000-4000-8000-000000000000",
          metadata: {
            added_tools: ["fill_form", "submit_form"],
            removed_tools: [],
            active_count: 7,
            added: 2,
            removed: 0
          }
        }
      }
    case 53:
      return {
        event: "render_block",
        data: { kind: "table", rows: Array.from({ length: 20 }, (_, n) => [n, text(i + n, 4), n / 3]) }
      }
    case 63:
      return { event: "chunk", data: { text: text(i, 3) }, stream_seq: i + 1 }
    case 83:
      return { event: "info", data: { code: "note", system_message: text(i, 6), user_message: null, metadata: { i } } }
    default:
      return i % 9 === 0 ? { e: "r", t: `${text(i, 2)} ` } : { e: "c", t: `${text(i, 1 + (i % 3))} ` }
  }
}

/** Lines of about so many bytes, and the bytes in pieces as a network delivers them. */
export const makeStream = (bytes: number, pieceBytes: number) => {
  const lines: Array<string> = []
  let size = 0
  for (let i = 0; size < bytes; i++) {
    const line = JSON.stringify(lineAt(i))
    lines.push(line)
    size += Buffer.byteLength(line) + 1
  }
  const whole = new TextEncoder().encode(`${lines.join("\n")}\n`)
  const pieces = Array.from({ length: Math.ceil(whole.length / pieceBytes) }, (_, n) =>
    whole.subarray(n * pieceBytes, (n + 1) * pieceBytes)
  )
  return { lines, pieces, bytes: whole.length }
}
