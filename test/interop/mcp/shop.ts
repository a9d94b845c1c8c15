/**
 * The application of the MCP interop suite, in the shape that the application SDK
 * takes: what a fixture or a real connection offers to the MCP client.
 */
export interface ShopTool {
  readonly name: string
  readonly description: string
  readonly readOnly: boolean
  readonly parametersSchema: Readonly<Record<string, unknown>>
  readonly outputSchema?: Readonly<Record<string, unknown>>
  readonly execute: (args: Readonly<Record<string, unknown>>) => Promise<unknown>
}

export const SHOP_NAMESPACE = "shop"

const itemsSchema = {
  type: "object",
  properties: { items: { type: "array", items: { type: "string" } } },
  required: ["items"]
}

/** The shop's tools. `setExtra` has to register or unregister `extra`. */
export const makeShop = (setExtra: (extra: ShopTool, on: boolean) => Promise<unknown>): ReadonlyArray<ShopTool> => {
  const items: Array<string> = []

  const extra: ShopTool = {
    name: "extra",
    description: "Is there only now and then.",
    readOnly: true,
    parametersSchema: { type: "object" },
    execute: async () => "extra"
  }

  return [
    {
      name: "list_items",
      description: "Lists the items.",
      readOnly: true,
      parametersSchema: { type: "object" },
      outputSchema: itemsSchema,
      execute: async () => ({ items })
    },
    {
      name: "add_item",
      description: "Adds an item.",
      readOnly: false,
      parametersSchema: { type: "object", properties: { item: { type: "string" } }, required: ["item"] },
      outputSchema: itemsSchema,
      execute: async ({ item }) => {
        items.push(String(item))
        return { items }
      }
    },
    {
      name: "wait",
      description: "Never answers.",
      readOnly: true,
      parametersSchema: { type: "object" },
      execute: () => new Promise(() => {})
    },
    {
      name: "fail",
      description: "Fails.",
      readOnly: true,
      parametersSchema: { type: "object" },
      execute: async () => {
        throw new Error("out of milk")
      }
    },
    {
      name: "set_extra",
      description: "Shows or hides the tool extra.",
      readOnly: true,
      parametersSchema: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
      execute: async ({ on }) => {
        await setExtra(extra, on === true)
        return null
      }
    }
  ]
}
