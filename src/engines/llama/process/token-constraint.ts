import type { LlamaGrammarEvaluationState } from "node-llama-cpp";
import type { ConstraintPlan } from "../constraint-plan.ts";

/**
 * Holds one choice to a grammar. The choice's loop asks for `evaluationState` right before each token is sampled and calls `read` after
 * each token was read; in between nothing else runs for this choice. It is made by `openConstraint`, one for each choice.
 */
export interface TokenConstraint {
  /** What binds the next token; undefined: nothing does (not yet, or no longer). The sampler advances it by the token it accepts. */
  readonly evaluationState: LlamaGrammarEvaluationState | undefined;

  /** A token was sampled and its text given to the reader. */
  read(text: string, reader: ReaderState): void;
}

/** Where the reader of the answer's text stands, as `TextReader` tells it. */
export interface ReaderState {
  readonly phase: "reasoning" | "content" | "call";
  /** Raw text since the opener of the call that is open. */
  readonly openCall: string | null;
}

export type OpenConstraint = (plan: ConstraintPlan) => TokenConstraint;
