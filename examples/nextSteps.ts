/** What to try once the example has been played, with the commands as they work on this machine. */
import { join, relative } from "node:path"

const root = join(import.meta.dirname, "..")
const cli = join(root, "dist", "cli.js")

/** A path as it is shortest to type here. */
const short = (path: string) => {
  const below = relative(process.cwd(), path)
  return below.startsWith("..") ? path : below
}

const node = short(process.execPath)
const program = `${node} ${short(cli)}`

const configuration = {
  mcpServers: {
    "frontend-tools": {
      command: process.execPath,
      args: [cli, "mcp"],
      env: { FRONTEND_TOOLS_STATIC_CLIENTS: "todo=<KEY>" }
    }
  }
}

export const nextSteps = (url: string): string => `
This bridge stays up at ${url} until you press Ctrl-C. What to try next:

1. Make a key for an application. It is a secret: whoever has it is that application.

   ${program} key --namespace todo --app-name "Todo list"

2. Stop this bridge and run one that lets it in, and the todo list beside it. The bridge prints what happens.

   FRONTEND_TOOLS_STATIC_CLIENTS="todo=<KEY>" ${program} serve --json
   FRONTEND_TOOLS_KEY="<KEY>" ${node} ${short(join(root, "examples", "todo-list", "main.ts"))}

3. Let a real model use it: put the bridge into the configuration of your MCP client instead of running it, start
   the todo list as above, and ask the model what is on it. It asks you before it changes anything.
   The todo page goes with it, too. It needs no key in a variable: copy it in the page and paste it to the model.

   ${node} ${short(join(root, "examples", "todo-page", "main.ts"))}

${JSON.stringify(configuration, undefined, 2).replaceAll(/^/gm, "   ")}
`
