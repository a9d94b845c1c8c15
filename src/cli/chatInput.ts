/** Where a chat's messages and a person's decisions come from: the lines of standard input. */
import { type Cause, Context, Effect, Layer, Queue, Stdio, Stream } from "effect"

/** Takes the lines that came in one go, at least one, instead of the queue of messages. */
export type LinesHandler = (lines: ReadonlyArray<string>) => Effect.Effect<void>

/**
 * Lines of standard input. On a terminal, while something takes lines, a line goes
 * there and nowhere else: what was typed for one question never answers the next.
 */
export class ChatInput extends Context.Service<
  ChatInput,
  {
    /** Whether a person can be asked. */
    readonly interactive: boolean
    /** The next message; `undefined` when the input has ended. */
    readonly next: Effect.Effect<string | undefined>
    /** Gives the lines to the handler while the effect runs. Without a terminal they wait for `next`. */
    readonly while: (handler: LinesHandler) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("effect-frontend-tools/cli/ChatInput") {
  /** `messages: false` reads a terminal only, and only for decisions. */
  static readonly layer = (options: { readonly messages: boolean }) =>
    Layer.effect(
      ChatInput,
      Effect.gen(function* () {
        const stdio = yield* Stdio.Stdio
        const interactive = yield* stdio.stdinIsTerminal
        const messages = yield* Queue.unbounded<string, Cause.Done>()
        let handler: LinesHandler | undefined

        if (interactive || options.messages) {
          yield* stdio.stdin.pipe(
            Stream.decodeText,
            Stream.splitLines,
            Stream.runForEachArray((lines) =>
              Effect.suspend(() =>
                interactive && handler !== undefined
                  ? handler(lines)
                  : Effect.sync(() => void Queue.offerAllUnsafe(messages, lines))
              )
            ),
            Effect.ignore,
            Effect.andThen(Queue.end(messages)),
            Effect.forkScoped
          )
        } else {
          yield* Queue.end(messages)
        }

        return ChatInput.of({
          interactive,
          next: Queue.take(messages).pipe(Effect.catch(() => Effect.undefined)),
          while: (taken) => (effect) =>
            Effect.acquireUseRelease(
              Effect.sync(() => {
                const before = handler
                handler = taken
                return before
              }),
              () => effect,
              (before) =>
                Effect.sync(() => {
                  handler = before
                })
            )
        })
      })
    )
}
