import type { Engine, GenerationIterator } from "../../wire/core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure, Usage } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { LoopGuard } from "../../wire/core/loop-guard.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { isVisible } from "../../wire/core/events.ts";
import { WellFormedEvents } from "../../wire/core/well-formed.ts";
import { internalError } from "../../wire/apis/failures.ts";
import type { Departure } from "./exchange.ts";
import { withoutOldest } from "../../wire/core/estimate-tokens.ts";

export type EventBatch = readonly GenerationEvent[];

/** Sees a batch before it is written. Returns the batch for the next observer; undefined: the same batch. */
export type BatchObserver = (events: EventBatch) => EventBatch | void;

export interface GenerationRun {
  readonly engine: Pick<Engine, "generate">;
  readonly request: GenerationRequest;
  /** Receives reports of the engine that are not events. */
  readonly observer?: GenerationObserver;
  /** Called in order for each batch. */
  readonly observers?: readonly BatchObserver[];
  /**
   * Called with the number of messages before and after the oldest ones were left out, for requests that ask for it (`limits.overflow`)
   * and whose prompt is too long. Absent: no message is left out.
   */
  readonly onTruncated?: (before: number, after: number) => void;
  /**
   * Called with the length of the text that an answer repeats over and over, in characters, before the answer is ended with reason "length".
   * Absent: loops are not detected.
   */
  readonly onLoop?: (period: number) => void;
  /**
   * Resolves with the usage of the generation so far, for one that is ended before its engine reports it: a steered response, or a loop.
   * null: not known.
   */
  readonly usageSoFar?: () => Promise<Usage | null>;
}

/**
 * Pulls a generation to its end. Each batch passes the observers and then `write`; the next one is pulled when the promise of `write`, if
 * any, has resolved, so a slow reader slows down its own source. When the client leaves, the iteration is ended, which cancels the work
 * of the engine, and nothing more is written.
 *
 * If `isComplete` returns true after a write, the rest of the generation is not needed: it is cancelled, and ends as `done`.
 *
 * Texts are well-formed: no half of a surrogate pair is alone, whatever the source is.
 *
 * Observers and `write` see exactly one `end` event, unless the client has left: an exception becomes `engine-error`, a missing end
 * `truncated`.
 */
export async function runGeneration(
  run: GenerationRun,
  departure: Departure,
  write: (events: EventBatch) => Promise<void> | undefined,
  isComplete: () => boolean = () => false,
): Promise<GenerationEnd> {
  const { engine, observer, observers = [], onTruncated, onLoop } = run;
  // Of several choices, one cannot be ended alone.
  const loopGuard = onLoop && (run.request.n ?? 1) === 1 ? new LoopGuard() : undefined;
  let { request } = run;
  let mayTruncate = onTruncated !== undefined && request.limits.overflow === "drop-oldest";
  let iterator: GenerationIterator | undefined;
  const leave = (): void => {
    iterator?.return?.().catch(() => {});
  };
  let ended: GenerationEnd | undefined;
  const emit = (events: EventBatch): Promise<void> | undefined => {
    // It may have left while the previous batch was taken, or while the engine ended.
    if (departure.happened) return undefined;
    let batch = wellFormed.read(events);
    for (const observe of observers) batch = observe(batch) ?? batch;
    const last = batch.at(-1);
    if (last?.type === "end") ended = last.end;
    return batch.length > 0 ? write(batch) : undefined;
  };
  const wellFormed = new WellFormedEvents();
  const taken: TakenBatch = { wait: undefined, end: undefined, period: 0, isEnough: false };
  /** Emits a batch. Returns whether the next one may be taken immediately. */
  const take = (events: EventBatch): boolean => {
    if (departure.happened) return false;
    taken.wait = emit(events);
    const last = events.at(-1);
    if (last?.type === "end") taken.end = last.end;
    else {
      taken.period = loopGuard ? loopIn(loopGuard, events) : 0;
      taken.isEnough = taken.period > 0 || isComplete();
    }
    return !taken.wait && !taken.end && !taken.isEnough;
  };
  const emitEnd = async (end: GenerationEnd): Promise<GenerationEnd> => {
    if (departure.happened) return clientGone;
    await emit([{ type: "end", end }]);
    return end;
  };
  departure.listen(leave);
  try {
    if (departure.happened) return clientGone;
    iterator = engine.generate(request, observer)[Symbol.asyncIterator]();
    for (;;) {
      const step = await iterator.next();
      if (departure.happened) return clientGone;
      if (step.done === true) break;
      const shorter = mayTruncate ? shortened(request, step.value) : null;
      if (shorter) {
        onTruncated?.(messageCount(request), messageCount(shorter));
        leave();
        request = shorter;
        iterator = engine.generate(request, observer)[Symbol.asyncIterator]();
        continue;
      }
      mayTruncate = false;
      // A promise for each batch lives until the next one: long enough to become garbage that only full collections find.
      if (take(step.value) && iterator.follow) await iterator.follow(take);
      const { wait, end, period, isEnough } = taken;
      if (wait) await wait;
      if (isEnough) {
        const usage = await run.usageSoFar?.().catch(() => null);
        await iterator.return?.();
        if (departure.happened) return clientGone;
        if (period > 0) onLoop?.(period);
        await emit([
          { type: "finish", choice: 0, ...(period > 0 ? { reason: "length", limit: "loop" } : { reason: "stop" }) },
          ...(usage ? [{ type: "usage", usage } as const] : []),
          { type: "end", end: { kind: "done" } },
        ]);
        return { kind: "done" };
      }
      if (!end) continue;
      // The engine may run code after its last batch.
      const after = await iterator.next();
      if (after.done !== true) leave();
      return ended ?? end;
    }
  } catch (cause) {
    leave();
    if (departure.happened) return clientGone;
    const failure = cause instanceof FailureError ? cause.failure : internalError(cause).failure;
    return emitEnd({ kind: "engine-error", failure });
  } finally {
    departure.listen(null);
  }
  return emitEnd({ kind: "truncated", failure: truncated });
}

/** The batch that was emitted last. */
interface TakenBatch {
  wait: Promise<void> | undefined;
  /** Of the engine. */
  end: GenerationEnd | undefined;
  /** The length of the text that the answer repeats; 0: it does not. */
  period: number;
  /** The rest of the generation is not needed. */
  isEnough: boolean;
}

/** The request without its oldest messages, if the first batch says that the prompt is too long and contains nothing of an answer. */
function shortened(request: GenerationRequest, first: EventBatch): GenerationRequest | null {
  const last = first.at(-1);
  if (last?.type !== "end" || !("failure" in last.end) || last.end.failure.kind !== "context-overflow") return null;
  return first.some(isVisible) ? null : withoutOldest(request, last.end.failure);
}

/** Returns the length of the text that the answer repeats, in characters; 0: it does not, or it has finished. */
function loopIn(guard: LoopGuard, events: EventBatch): number {
  let period = 0;
  for (const event of events) {
    if (event.type === "finish") return 0;
    if (event.type === "text-delta") period ||= guard.read(event.text);
    else if (event.type === "reasoning-delta") period ||= guard.read(event.text, "reasoning");
    else if (event.type === "tool-call-delta") period ||= guard.read(event.arguments, "structured");
  }
  return period;
}

function messageCount({ prompt }: GenerationRequest): number {
  return prompt.kind === "chat" ? prompt.messages.length : 0;
}

const clientGone: GenerationEnd = { kind: "client-gone" };

const truncated: GenerationFailure = {
  message: "The source stopped before it had finished.",
  status: 502,
  kind: "bad-answer",
  param: null,
  code: null,
};
