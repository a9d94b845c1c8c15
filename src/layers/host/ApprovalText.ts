/**
 * What a person reads before they let a write run: which application, which tool,
 * which arguments (bridge protocol, part h).
 */
import { CLIENT_KEY_PATTERN } from "../../domain/bridge/ClientKey.ts"
import type { HostTool } from "../../domain/bridge/HostTool.ts"

/** The namespace of the bridge's own tools, whose arguments may carry a key. */
const BRIDGE_NAMESPACE = "frontend_tools"

const SHOWN_HEAD = 6000
const SHOWN_TAIL = 1500

// Characters that draw nothing, or that turn or hide what is around them.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu

const escapeUnseen = (character: string): string =>
  character === "\n"
    ? character
    : Array.from(
        { length: character.length },
        (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`
      ).join("")

/** The text with every character in it made visible; only line breaks are left as they are. */
export const visible = (text: string): string => text.replace(UNSEEN, escapeUnseen)

const hideKeys = (name: string, value: unknown): unknown =>
  typeof value === "string" && (name === "key" || CLIENT_KEY_PATTERN.test(value)) ? "(a key, not shown)" : value

/**
 * Indented JSON in which every character can be seen, so that no argument can pass
 * for another line of the question. A text too long to be read is cut in its
 * middle, and says so.
 */
const argumentsText = (tool: HostTool, args: unknown): string => {
  const json = JSON.stringify(args, tool.namespace === BRIDGE_NAMESPACE ? hideKeys : undefined, 2) ?? "{}"
  const text = visible(json)
  const hidden = text.length - SHOWN_HEAD - SHOWN_TAIL
  return hidden <= 0
    ? text
    : `${text.slice(0, SHOWN_HEAD)}\n[… ${hidden} characters are NOT SHOWN here …]\n${text.slice(-SHOWN_TAIL)}`
}

/** The question about one call of a write tool. */
export const approvalText = (tool: HostTool, args: unknown): string =>
  [
    "A tool of a running application wants to write. Allow this one call?",
    "",
    `Application: ${tool.namespace}`,
    `Tool: ${tool.rawName} (${tool.publicName})`,
    `Arguments: ${argumentsText(tool, args)}`
  ].join("\n")
