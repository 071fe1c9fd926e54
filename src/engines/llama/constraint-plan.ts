/**
 * What an answer is held to, decided by the server from the request and the format, and enforced beside the model: data that crosses
 * the process boundary. `process/token-constraint.ts` is the other half.
 */
export interface ConstraintPlan {
  /** The grammar, in llama.cpp's GBNF, with a rule `root`. */
  readonly gbnf: string;
  /**
   * When it begins to bind: with the first token; when the reader leaves the reasoning (at once if it is not in one); or when the
   * reader sees a call begin, in which case the text since the call's opener is fed to the grammar first.
   */
  readonly begins: "at-once" | "after-reasoning" | "with-call";
}
