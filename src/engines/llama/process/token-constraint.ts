import type { ReaderPlace } from "../../../formats/grammar/call-has-begun.ts";
import type { ConstraintPlan } from "../preparing/constraint-plan.ts";
import type { NativeGrammar } from "./c-api/native-sampler.ts";

/**
 * Holds one choice to a grammar. The choice's loop asks for `grammar` and `banned` right before each token is drawn and calls `read`
 * after each token was read; in between nothing else runs for this choice. It is made by `openConstraint`, one for each choice.
 */
export interface TokenConstraint {
  /** What binds the next token; undefined: nothing does (not yet, or no longer). Whoever draws a token lets it accept that one. */
  readonly grammar: NativeGrammar | undefined;

  /** Where the grammar allows few tokens: those, and perhaps a few more. undefined: they are many, or which ones is not known. */
  readonly next: readonly number[] | undefined;

  /** Tokens that the grammar would let pass and that must not come, while it binds. */
  readonly banned: readonly number[];

  /**
   * A token was drawn and its text given to the reader. `bytes`: all that the token stands for. Throws FailureError if the answer must end.
   */
  read(text: string, bytes: Uint8Array, reader: ReaderPlace): void;

  free(): void;
}

/** undefined: an optional one cannot be kept. Throws FailureError for a client's grammar that llama.cpp does not take. */
export type OpenConstraint = (plan: ConstraintPlan) => TokenConstraint | undefined;
