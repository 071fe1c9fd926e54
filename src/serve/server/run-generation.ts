import type { GenerationIterator } from "../../wire/core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure, Usage } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { LoopGuard } from "../../wire/core/loop-guard.ts";
import { WellFormedEvents } from "../../wire/core/well-formed.ts";
import { internalError } from "../../wire/apis/failures.ts";
import type { Departure } from "./exchange.ts";

export type EventBatch = readonly GenerationEvent[];

/** Sees a batch before it is written. Returns the batch for the next observer; undefined: the same batch. */
export type BatchObserver = (events: EventBatch) => EventBatch | void;

export interface GenerationRun {
  /** Starts the generation. Returning from the iteration cancels it. */
  readonly start: () => AsyncIterable<EventBatch>;
  /** Called in order for each batch. */
  readonly observers?: readonly BatchObserver[];
  /**
   * Called with the length of the text that an answer repeats over and over, in characters, before the answer is ended with reason "length".
   * Absent: loops are not detected. Of several choices, one cannot be ended alone.
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
  { start, observers = [], onLoop, usageSoFar }: GenerationRun,
  departure: Departure,
  write: (events: EventBatch) => Promise<void> | undefined,
  isComplete: () => boolean = () => false,
): Promise<GenerationEnd> {
  const wellFormed = new WellFormedEvents();
  const loopGuard = onLoop && new LoopGuard();
  let source: GenerationIterator | undefined;
  const leave = (): void => {
    source?.return?.().catch(() => {});
  };
  const emit = (events: EventBatch): Emitted => {
    // It may have left while the previous batch was taken, or while the engine ended.
    if (departure.happened) return nothingEmitted;
    let batch = wellFormed.read(events);
    for (const observe of observers) batch = observe(batch) ?? batch;
    const last = batch.at(-1);
    const wait = batch.length > 0 ? write(batch) : undefined;
    return { wait, end: last?.type === "end" ? last.end : undefined };
  };
  /** Why the next batch may not be taken immediately; undefined: it may. */
  let pause: Pause | undefined;
  const take = (events: EventBatch): boolean => {
    const { wait, end } = emit(events);
    const last = events.at(-1);
    const period = loopGuard && last?.type !== "end" ? loopIn(loopGuard, events) : 0;
    if (last?.type === "end") pause = { wait, end: end ?? last.end };
    else if (period > 0 || isComplete()) pause = { wait, enough: { period } };
    else pause = wait || departure.happened ? { wait } : undefined;
    return pause === undefined;
  };
  const emitEnd = async (end: GenerationEnd): Promise<GenerationEnd> => {
    if (departure.happened) return clientGone;
    await emit([{ type: "end", end }]).wait;
    return end;
  };
  departure.listen(leave);
  try {
    if (departure.happened) return clientGone;
    source = start()[Symbol.asyncIterator]() as GenerationIterator;
    for (;;) {
      const step = await source.next();
      if (departure.happened) return clientGone;
      if (step.done === true) break;
      // A promise for each batch lives until the next one: long enough to become garbage that only full collections find.
      if (take(step.value)) await source.follow?.(take);
      if (!pause) continue;
      const { wait, end, enough } = pause;
      if (wait) await wait;
      if (enough) {
        const usage = await usageSoFar?.().catch(() => null);
        await source.return?.();
        if (departure.happened) return clientGone;
        const { period } = enough;
        if (period > 0) onLoop?.(period);
        await emit([
          { type: "finish", choice: 0, ...(period > 0 ? { reason: "length", limit: "loop" } : { reason: "stop" }) },
          ...(usage ? [{ type: "usage", usage } as const] : []),
          { type: "end", end: { kind: "done" } },
        ]).wait;
        return { kind: "done" };
      }
      if (!end) continue;
      // The engine may run code after its last batch.
      const after = await source.next();
      if (after.done !== true) leave();
      return end;
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

/** What became of a batch. */
interface Emitted {
  /** The reader takes the batch slowly. */
  readonly wait: Promise<void> | undefined;
  /** The end of the generation, as it was written. */
  readonly end: GenerationEnd | undefined;
}

const nothingEmitted: Emitted = { wait: undefined, end: undefined };

/** Why the batch after the last one is not taken immediately. */
interface Pause {
  /** The reader takes the last batch slowly. */
  readonly wait: Promise<void> | undefined;
  /** The generation has ended. */
  readonly end?: GenerationEnd;
  /** The rest of the generation is not needed: the answer repeats a text of this length, in characters, or is complete (0). */
  readonly enough?: { readonly period: number };
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

const clientGone: GenerationEnd = { kind: "client-gone" };

const truncated: GenerationFailure = {
  message: "The source stopped before it had finished.",
  status: 502,
  kind: "bad-answer",
  param: null,
  code: null,
};
