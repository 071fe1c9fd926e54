import { FairQueue } from "../../../lifecycle/fair-queue.ts";
import { isOver, type Job, type Slot } from "./slot.ts";
import type { GenerationFailure } from "../../../../core/events.ts";

/** From so many tokens on, a prompt that another choice is reading just now is worth waiting for. */
const worthWaiting = 64;

/** Choices without a slot: those that have not begun, a line for each owner; and those that had to give theirs back, who come first. */
export class WaitingJobs {
  readonly #fresh = new FairQueue<Job>();
  /** They had begun when the room ran out: who began first is first. */
  #interrupted: Job[] = [];
  readonly #sharesBeginnings: boolean;

  /** `sharesBeginnings`: a choice can be given what another one knows of the same prompt. */
  constructor(sharesBeginnings: boolean) {
    this.#sharesBeginnings = sharesBeginnings;
  }

  get length(): number {
    return this.#fresh.length + this.#interrupted.length;
  }

  /** How many of one owner have not begun. */
  freshOf(owner: string | undefined): number {
    return this.#fresh.lengthOf(owner);
  }

  push(job: Job): void {
    this.#fresh.push(job, job.owner);
  }

  /** It gave its slot back. */
  interrupt(job: Job): void {
    this.#interrupted = [job, ...this.#interrupted];
  }

  /** It gets a slot. True: its first one. */
  take(job: Job): boolean {
    const others = this.#interrupted.filter((other) => other !== job);
    const isFirst = others.length === this.#interrupted.length;
    this.#interrupted = others;
    if (isFirst) this.#fresh.take(job);
    return isFirst;
  }

  /** Lets those go for whom nobody waits any more; whether others move up. */
  dropOver(): boolean {
    for (const job of this.#interrupted) if (isOver(job)) job.choice.release();
    this.#interrupted = this.#interrupted.filter((job) => !isOver(job));
    return this.#fresh.dropWhere(isOver);
  }

  /** The choice that is to have the next free slot; undefined: there is none, or no slot. */
  next(slots: readonly Slot[]): Job | undefined {
    if (slots.every(({ job }) => job)) return undefined;
    const [interrupted] = this.#interrupted;
    // Others would take the room that it waits for.
    if (interrupted) return slots.some(({ job }) => job) && !canForget(slots) ? undefined : interrupted;
    for (const job of this.#fresh) if (!this.#waitsForSibling(job, slots)) return job;
    return undefined;
  }

  /** Another choice of the same prompt is reading it just now: what it knows then is worth waiting for. */
  #waitsForSibling({ choice, request }: Job, slots: readonly Slot[]): boolean {
    if (!this.#sharesBeginnings || !choice.usesCache || choice.prompt.length <= worthWaiting) return false;
    return slots.some(
      ({ job: other }) =>
        other?.request === request && other.choice.prompt === choice.prompt && other.choice.promptLeft > 0,
    );
  }
}

/** Some slot is idle, and what it knows can be forgotten. */
function canForget(slots: readonly Slot[]): boolean {
  return slots.some(({ job, sequence }) => !job && sequence.length > 0);
}

/** All slots are busy and the queue is at its bound. `what` waits there. */
export function queueFull(waiting: number, what = "choices"): GenerationFailure {
  return {
    message: `The model is busy and ${waiting} ${what} are already waiting for it. Please retry after a moment.`,
    status: 429,
    kind: "overloaded",
    param: null,
    code: "rate_limit_exceeded",
    retryAfterSeconds: 1,
  };
}
