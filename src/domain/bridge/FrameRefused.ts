import { Schema } from "effect"
import { ServerErrorCode } from "./ErrorCode.ts"

/**
 * A frame that cannot be obeyed. `message` and `code` go back to the sender; it is
 * fatal to the connection unless the fault is inside a tool.
 */
export class FrameRefused extends Schema.TaggedError<FrameRefused>()("FrameRefused", {
  code: ServerErrorCode,
  message: Schema.String,
  /** Where in the frame, from its root; empty for the frame as a whole. */
  path: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  fatal: Schema.Boolean
}) {}
