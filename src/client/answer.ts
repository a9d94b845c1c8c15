/** How a call ended inside the application. */
export type Outcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly code: string; readonly message: string }

/** A text of the application goes into a model's context: it gets no more room than this. */
const MAX_MESSAGE_LENGTH = 4096

export const failed = (code: string, message: string): Outcome => ({ ok: false, code, message })

const nameOf = (value: object): string => {
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
  return typeof name === "string" && name !== "" ? name : "object"
}

/** What was thrown, in words. Cannot throw itself, whatever the value does when it is looked at. */
export const describeThrown = (thrown: unknown): string => {
  try {
    if (thrown instanceof Error) return thrown.message === "" ? thrown.name : thrown.message
    if (typeof thrown === "string") return thrown
    if (typeof thrown === "object" && thrown !== null) {
      if ("message" in thrown && typeof thrown.message === "string") return thrown.message
      let json: string | undefined
      try {
        json = JSON.stringify(thrown)
      } catch {
        // A cycle or a BigInt inside: its type has to do.
      }
      return json === undefined || json === "{}" ? `the tool threw a value of type ${nameOf(thrown)}` : json
    }
    if (typeof thrown === "function") return "the tool threw a function"
    return `the tool threw ${String(thrown)}${typeof thrown === "bigint" ? "n" : ""}`
  } catch {
    return "the tool threw a value that cannot be read"
  }
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  // The Object of another frame is plain too.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const step = (path: string, key: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`

/** The first place of a value that JSON would lose or refuse, in words. */
const findFault = (value: unknown, path: string, above: ReadonlySet<object>): string | undefined => {
  switch (typeof value) {
    case "bigint":
      return `${path} is a BigInt`
    case "number":
      return Number.isFinite(value) ? undefined : `${path} is ${value}`
    case "function":
    case "symbol":
      return `${path} is a ${typeof value}`
    case "object": {
      if (value === null) return undefined
      if (above.has(value)) return `${path} refers back to an object around it`
      if ("toJSON" in value && typeof value.toJSON === "function") return undefined
      const within = new Set(above).add(value)
      if (Array.isArray(value)) {
        for (const [index, item] of value.entries()) {
          const fault = findFault(item, `${path}[${index}]`, within)
          if (fault !== undefined) return fault
        }
        return undefined
      }
      const entries = Object.entries(value)
      if (entries.length === 0 && !isPlain(value)) return `${path} is a ${nameOf(value)}, which has no JSON form`
      for (const [key, item] of entries) {
        // A property that holds a function is left out, as JSON.stringify does: objects have methods.
        const fault = typeof item === "function" ? undefined : findFault(item, step(path, key), within)
        if (fault !== undefined) return fault
      }
      return undefined
    }
    default:
      return undefined
  }
}

const explain = (result: unknown, fallback: string): string => {
  try {
    return findFault(result, "result", new Set()) ?? fallback
  } catch {
    // A getter that throws, or nesting deeper than the stack.
    return fallback
  }
}

/** A result as JSON text, or why it has none. Absent results are `null`. */
const encodeResult = (result: unknown): { readonly json: string } | { readonly fault: string } => {
  if (result === undefined) return { json: "null" }
  let json: string | undefined
  try {
    json = JSON.stringify(result)
  } catch (error) {
    return { fault: explain(result, describeThrown(error)) }
  }
  if (json === undefined) return { fault: explain(result, "result has no JSON form") }
  // Where something was lost, JSON.stringify leaves one of these behind.
  const suspect = typeof result === "object" && (json.includes("null") || json.includes("{}"))
  if (suspect || json === "null") {
    const fault = result === null ? undefined : explain(result, "")
    if (fault !== undefined && fault !== "") return { fault }
  }
  return { json }
}

const utf8 = new TextEncoder()

/** The bytes of a text that has more than `maxBytes`, counted only where that may be. */
export const excess = (text: string, maxBytes: number): number | undefined => {
  if (text.length * 3 <= maxBytes) return undefined
  const bytes = utf8.encode(text).length
  return bytes > maxBytes ? bytes : undefined
}

const failureText = (id: string, code: string, message: string): string =>
  `{"type":"callResult","callId":${id},"ok":false,"error":${JSON.stringify({
    code,
    message: message.slice(0, MAX_MESSAGE_LENGTH)
  })}}`

/**
 * The `callResult` frame of a call (bridge protocol, part a.1). A result that JSON
 * cannot carry, or that the bridge would not read, becomes an `internal` failure which
 * says what is wrong where.
 */
export const encodeAnswer = (callId: string, outcome: Outcome, maxFrameBytes: number): string => {
  const id = JSON.stringify(callId)
  if (!outcome.ok) return failureText(id, outcome.code, outcome.message)
  const encoded = encodeResult(outcome.result)
  if ("fault" in encoded) return failureText(id, "internal", `the result is not JSON: ${encoded.fault}`)
  const text = `{"type":"callResult","callId":${id},"ok":true,"result":${encoded.json}}`
  const bytes = excess(text, maxFrameBytes)
  return bytes === undefined
    ? text
    : failureText(id, "internal", `the result is too large: ${bytes} bytes, and the bridge reads ${maxFrameBytes}`)
}
