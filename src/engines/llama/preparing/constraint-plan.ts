import type { Format } from "../../../text/formats/format.ts";
import type { JsonSchema, Tool } from "../../../wire/core/message.ts";

/**
 * The constraint on an answer. The preparing thread makes it from the request and the format; `process/open-constraint.ts` enforces it
 * while tokens are sampled. It is plain data, which is sent between the threads once.
 */
export interface ConstraintPlan {
  readonly grammar: PlannedGrammar;
  /**
   * When the constraint becomes active: with the first token; at the end of the reasoning that the prompt opened; or at the beginning of
   * a call, in which case the grammar first accepts the text since the call's opener.
   */
  readonly begins: "immediately" | "after-reasoning" | "with-call";
  /** The format that the answer is parsed with. */
  readonly format: Format;
  /** The constrained text is JSON: an answer, or calls that are written as objects. */
  readonly json?: true;
  /** The client did not request it: if it cannot be enforced, the answer is not constrained. */
  readonly optional?: true;
}

/** A generated grammar, or the client's own. */
export interface PlannedGrammar {
  readonly type: "ours" | "gbnf";
  readonly gbnf: string;
  /** The path, in the request, of the grammar or of what it was made from. */
  readonly path: string;
}

/** What a complete answer is validated against if its grammar cannot enforce all of it. */
export interface AnswerCheckPlan {
  readonly tools: readonly Tool[];
  /** The schema of the visible text. */
  readonly schema?: JsonSchema;
}
