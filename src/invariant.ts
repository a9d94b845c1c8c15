/** The companion that a harness's tests mount beside the plugin (bridge protocol, part i). */
export { apply, inject, name } from "./layers/host/DshInvariant.ts"
