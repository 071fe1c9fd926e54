import type { StepCounters } from "../protocol.ts";
import type { Runner, Slot } from "./job.ts";
import type { Pass } from "./pass-planner.ts";

/** What was computed so far. */
export class StepCounts {
  #decodeSteps = 0;
  #generatedTokens = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #draftedTokens = 0;
  #acceptedTokens = 0;

  /** A choice began, with so many tokens of its prompt known. */
  began(cachedTokens: number): void {
    this.#cachedTokens += cachedTokens;
  }

  /** A pass is done; `read` draws what follows of it. */
  passed({ prompted, drafted }: Pass<Runner>, active: readonly Slot[], read: () => void): void {
    const before = totals(active);
    read();
    const after = totals(active);
    this.#decodeSteps++;
    this.#promptTokens += prompted;
    this.#draftedTokens += drafted;
    this.#generatedTokens += after.generated - before.generated;
    this.#acceptedTokens += after.accepted - before.accepted;
  }

  get counters(): Pick<
    StepCounters,
    "decodeSteps" | "generatedTokens" | "promptTokens" | "cachedTokens" | "draftedTokens" | "acceptedTokens"
  > {
    return {
      decodeSteps: this.#decodeSteps,
      generatedTokens: this.#generatedTokens,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      draftedTokens: this.#draftedTokens,
      acceptedTokens: this.#acceptedTokens,
    };
  }
}

/** Tokens of all answers so far, and drafts that were right. */
function totals(active: readonly Slot[]): { readonly generated: number; readonly accepted: number } {
  let generated = 0;
  let accepted = 0;
  for (const { job } of active) {
    generated += job?.choice.generatedTokens ?? 0;
    accepted += job?.choice.guesses.accepted ?? 0;
  }
  return { generated, accepted };
}
