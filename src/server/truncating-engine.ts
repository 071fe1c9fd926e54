import { cancellable } from "../core/cancellable.ts";
import type { Engine } from "../core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../core/events.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { shows } from "../core/shows.ts";
import { withoutOldest } from "../core/without-oldest.ts";

type Generator = Pick<Engine, "generate">;

/**
 * An engine that leaves out the oldest messages of a prompt that is too long, for requests that ask for it (`limits.overflow`), and tries
 * again. Only a refusal before the first event counts, so no part of an answer comes twice. This works over every source that
 * knows its context size and refuses longer prompts. `onTruncated` is called with the number of messages before and after each attempt.
 */
export function truncatingEngine(engine: Generator, onTruncated: (before: number, after: number) => void): Generator {
  return {
    generate: (request, observer) =>
      request.limits.overflow === "drop-oldest"
        ? cancellable((signal) => attempts(engine, request, { signal, observer, onTruncated }))
        : engine.generate(request, observer),
  };
}

interface AttemptOptions {
  readonly signal: AbortSignal;
  readonly observer: GenerationObserver | undefined;
  readonly onTruncated: (before: number, after: number) => void;
}

async function* attempts(
  engine: Generator,
  request: GenerationRequest,
  { signal, observer, onTruncated }: AttemptOptions,
): AsyncGenerator<readonly GenerationEvent[]> {
  for (let current = request; ;) {
    const batches = engine.generate(current, observer)[Symbol.asyncIterator]();
    const leave = (): void => void batches.return?.().catch(() => {});
    signal.addEventListener("abort", leave, { once: true });
    try {
      const first = await batches.next();
      const failure = first.done === true ? null : overflowIn(first.value);
      const shorter = failure && !signal.aborted ? withoutOldest(current, failure) : null;
      if (shorter) {
        onTruncated(messagesOf(current), messagesOf(shorter));
        current = shorter;
        continue;
      }
      for (let step = first; step.done !== true; step = await batches.next()) yield step.value;
      return;
    } finally {
      signal.removeEventListener("abort", leave);
      leave();
    }
  }
}

/** The failure of a first batch that shows nothing of an answer, if it says that the prompt is too long. */
function overflowIn(events: readonly GenerationEvent[]): GenerationFailure | null {
  const last = events.at(-1);
  if (last?.type !== "end" || !("failure" in last.end)) return null;
  return !events.some(shows) && last.end.failure.kind === "context-overflow" ? last.end.failure : null;
}

function messagesOf({ prompt }: GenerationRequest): number {
  return prompt.kind === "chat" ? prompt.messages.length : 0;
}
