import type { Format } from "../../../formats/format.ts";
import type { JsonSchema, Tool } from "../../../core/message.ts";

/**
 * The constraint on an answer. The preparing thread makes it from the request and the format; `process/open-constraint.ts` enforces it
 * while the model writes. It is plain data, which is sent from one thread to the other once.
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
  /** What it holds is JSON: an answer, or calls that are written as objects. */
  readonly json?: true;
  /** Nobody asked for it: where it cannot be kept, the answer goes without. */
  readonly optional?: true;
}

/** Our grammar, or the client's own. */
export interface PlannedGrammar {
  readonly type: "ours" | "gbnf";
  readonly gbnf: string;
  /** Where in the request it stands, or what it was made of. */
  readonly path: string;
}

/** What a finished answer is checked against if its grammar cannot enforce all of it. */
export interface AnswerCheckPlan {
  readonly tools: readonly Tool[];
  /** The schema of the visible text. */
  readonly schema?: JsonSchema;
}
