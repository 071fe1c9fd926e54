import type { ReaderPlace } from "../../../formats/grammar/call-has-begun.ts";
import type { ConstraintPlan } from "../preparing/constraint-plan.ts";
import type { GrammarAnswer } from "./token-grammar.ts";

/**
 * Holds one choice to a grammar. The choice's loop asks for `grammar` and `banned` right before each token is drawn and calls `read`
 * after each token was read; in between nothing else runs for this choice. It is made by `openConstraint`, one for each choice.
 */
export interface TokenConstraint {
  /** What binds the next token; undefined: nothing does (not yet, or no longer). Whoever draws a token lets it accept that one. */
  readonly grammar: GrammarAnswer | undefined;

  /** Tokens that the grammar would let pass and that must not come, while it binds. */
  readonly banned: readonly number[];

  /** A token was sampled and its text given to the reader. `bytes`: all that the token represents. */
  read(text: string, bytes: Uint8Array, reader: ReaderPlace): void;

  free(): void;
}

/** undefined: an optional one cannot be kept. Throws FailureError for a client's grammar that cannot be followed. */
export type OpenConstraint = (plan: ConstraintPlan) => TokenConstraint | undefined;
