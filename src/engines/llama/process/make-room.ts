import type { Job, Slot } from "./job.ts";
import type { KeptStates } from "./kept-states.ts";

/**
 * The memory is full: what the idle slot knows that was unused for the longest time is forgotten. Where none is idle, the choice that came
 * last gives its part back, and is to be read again later: it is the answer. The only one ends with what it has.
 */
export function makeRoom(slots: readonly Slot[], states: Pick<KeptStates, "keep">): Job | undefined {
  const [idle, ...more] = slots.filter(({ job, sequence }) => !job && sequence.length > 0);
  if (idle) {
    const oldest = more.reduce((slot, other) => (other.usedAt < slot.usedAt ? other : slot), idle);
    states.keep(oldest.sequence);
    oldest.sequence.clear();
    return undefined;
  }
  const [busy, ...others] = slots.flatMap((slot) => (slot.job ? [{ slot, job: slot.job }] : []));
  if (!busy) return undefined;
  if (others.length === 0) {
    busy.job.choice.cut();
    return undefined;
  }
  const { slot, job } = others.reduce((last, other) => (other.job.order > last.job.order ? other : last), busy);
  if (!job.choice.forgets) states.keep(slot.sequence);
  job.choice.giveBack();
  slot.job = undefined;
  return job;
}
