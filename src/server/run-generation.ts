import type { Engine } from "../core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationRequest } from "../core/request.ts";
import { internalError } from "../apis/failures.ts";
import type { Departure } from "./exchange.ts";

/**
 * Pulls a generation to its end and hands each batch to `take`, the next one only when the promise that `take` returned (if any) has
 * resolved: so a slow reader holds back its own source. When the client leaves, the iteration is ended, which cancels the
 * engine's work, and nothing more is taken.
 *
 * Whatever the engine does, `take` sees exactly one `end` event, unless the client has gone: an exception becomes `engine-error`, a
 * missing end `truncated`.
 */
export async function runGeneration(
  engine: Pick<Engine, "generate">,
  request: GenerationRequest,
  departure: Departure,
  take: (events: readonly GenerationEvent[]) => Promise<void> | undefined,
): Promise<GenerationEnd> {
  let iterator: AsyncIterator<readonly GenerationEvent[]> | undefined;
  const leave = (): void => {
    iterator?.return?.().catch(() => {});
  };
  departure.listen(leave);
  try {
    if (departure.happened) return clientGone;
    iterator = engine.generate(request)[Symbol.asyncIterator]();
    for (;;) {
      const step = await iterator.next();
      if (departure.happened) return clientGone;
      if (step.done === true) break;
      const last = step.value.at(-1);
      const wait = take(step.value);
      if (wait) await wait;
      if (last?.type !== "end") continue;
      // Lets the engine run its code after the last batch, where it may clean up.
      const after = await iterator.next();
      if (after.done !== true) leave();
      return last.end;
    }
  } catch (cause) {
    leave();
    if (departure.happened) return clientGone;
    const failure = cause instanceof FailureError ? cause.failure : internalError(cause).failure;
    return ended({ kind: "engine-error", failure });
  } finally {
    departure.listen(null);
  }
  return ended({ kind: "truncated", failure: truncated });

  async function ended(end: GenerationEnd): Promise<GenerationEnd> {
    const wait = take([{ type: "end", end }]);
    if (wait) await wait;
    return end;
  }
}

const clientGone: GenerationEnd = { kind: "client-gone" };

const truncated: GenerationFailure = {
  message: "The source stopped before it had finished.",
  status: 502,
  kind: "bad-answer",
  param: null,
  code: null,
};
