import type { Format } from "../../formats/format.ts";
import type { GrammarData } from "../../formats/grammar/grammar.ts";

/**
 * What an answer is held to, decided by the server from the request and the format, and enforced beside the model: data that crosses
 * the process boundary. `process/open-constraint.ts` is the other half.
 */
export interface ConstraintPlan {
  readonly grammar: PlannedGrammar;
  /**
   * When it begins to bind: with the first token; when the reader leaves the reasoning that the prompt began; or when the reader sees
   * a call begin, in which case the text since the call's opener is read by the grammar first.
   */
  readonly begins: "at-once" | "after-reasoning" | "with-call";
  /** The format that the answer is read with. */
  readonly format: Format;
}

/** A grammar of ours, which can go on from where a text has come; or a client's, in GBNF, which stood at `path`. */
export type PlannedGrammar =
  | { readonly type: "ours"; readonly data: GrammarData }
  | { readonly type: "gbnf"; readonly gbnf: string; readonly path: string };
