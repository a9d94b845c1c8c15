import { Schema } from "effect"

/** A run that cannot go on. The turn is over; the text is for developers. */
export class RunFailure extends Schema.TaggedError<RunFailure>("effect-frontend-tools/backend/RunFailure")(
  "RunFailure",
  {
    /** A word for machines. */
    type: Schema.String,
    text: Schema.String
  }
) {
  override get message(): string {
    return `${this.type}: ${this.text}`
  }
}
