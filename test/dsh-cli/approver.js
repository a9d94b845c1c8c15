// A plugin that answers every question of the harness with yes.
export const name = "approver"
export const apply = (ctx) => ctx.on("approval/request", () => Promise.resolve("allowed-once"))
