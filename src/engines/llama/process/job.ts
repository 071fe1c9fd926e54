import type { Choice } from "./choice.ts";
import type { RequestRun } from "./request-run.ts";
import type { Sequence } from "./sequence.ts";

/** One choice of a request, which waits for a slot or has one. */
export interface Job {
  readonly request: RequestRun;
  readonly choice: Choice;
  readonly owner: string | undefined;
  /** Who came later has the larger number. */
  readonly order: number;
}

/** A place for a choice. */
export interface Slot {
  readonly sequence: Sequence;
  job: Job | undefined;
  /** The turn in which it was last used. */
  usedAt: number;
}

/** A slot at work. */
export interface Runner {
  readonly slot: Slot;
  readonly job: Job;
  readonly sequence: Sequence;
  readonly choice: Choice;
  readonly request: RequestRun;
  readonly order: number;
}

export function runnerOf(slot: Slot): Runner[] {
  const { job, sequence } = slot;
  return job ? [{ slot, job, sequence, choice: job.choice, request: job.request, order: job.order }] : [];
}

/** Nobody waits for it any more. */
export function isOver({ request }: Job): boolean {
  return request.cancelled || request.ended;
}
