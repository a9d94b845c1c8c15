import { Effect, type Exit, Tracer } from "effect"

/**
 * Runs an effect in a span, if there is a tracer to see it: the native one exports
 * nothing, and its spans would only cost time and memory. `outcome` names how the
 * effect ended; it becomes the attribute `frontend_tools.outcome`.
 *
 * @internal
 */
export const traced = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  span: {
    readonly name: string
    readonly kind: Tracer.SpanKind
    readonly attributes: Readonly<Record<string, string>>
    readonly outcome: (exit: Exit.Exit<A, E>) => string
  }
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) =>
    fiber.getRef(Tracer.Tracer) === Tracer.nativeTracer
      ? effect
      : Effect.useSpan(span.name, { kind: span.kind, attributes: { ...span.attributes } }, (opened) =>
          Effect.onExit(effect, (exit) =>
            Effect.sync(() => opened.attribute("frontend_tools.outcome", span.outcome(exit)))
          )
        )
  )
