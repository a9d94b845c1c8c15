/**
 * `node extensionHost.ts <folder>`: a browser that has nothing but what the example's worker
 * asks of it. Its storage and its tabs are files in the folder, so they outlive the worker.
 * Lines of standard input are messages of the panel, or `alarm`; what the worker tells the
 * panel is printed.
 */
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [, , folder = ""] = process.argv
const file = `${folder}/storage.json`

const load = (): Record<string, unknown> => (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {})
const save = (items: Record<string, unknown>) => {
  writeFileSync(`${file}.new`, JSON.stringify(items))
  renameSync(`${file}.new`, file)
}

const alarms = new Set<(alarm: { readonly name: string }) => void>()
const panels = new Set<(message: unknown) => void>()
const tab = { id: 7, title: "Home", url: "https://example.test/" }

Object.assign(globalThis, {
  chrome: {
    alarms: {
      create: async (name: string, { periodInMinutes }: { readonly periodInMinutes: number }) =>
        console.log(JSON.stringify({ alarm: name, periodInMinutes })),
      onAlarm: { addListener: (listener: (alarm: { readonly name: string }) => void) => alarms.add(listener) }
    },
    runtime: {
      onMessage: { addListener: (listener: (message: unknown) => void) => panels.add(listener) },
      sendMessage: async (message: unknown) => console.log(JSON.stringify(message))
    },
    storage: {
      local: {
        get: async (key: string | null) => (key === null ? load() : { [key]: load()[key] }),
        set: async (items: Record<string, unknown>) => save({ ...load(), ...items }),
        remove: async (keys: string | ReadonlyArray<string>) => {
          const items = load()
          for (const key of [keys].flat()) delete items[String(key)]
          save(items)
        }
      }
    },
    tabs: {
      create: async ({ url }: { readonly url: string }) => {
        appendFileSync(`${folder}/tabs.txt`, `${url}\n`)
        return { id: 8, url }
      },
      get: async (id: number) => ({ ...tab, id }),
      query: async () => [tab]
    }
  }
})

createInterface(process.stdin).on("line", (line) => {
  if (line === "alarm") for (const listener of alarms) listener({ name: "replay" })
  else for (const listener of panels) listener(JSON.parse(line))
})

await import("../../../examples/extension-worker.ts")
