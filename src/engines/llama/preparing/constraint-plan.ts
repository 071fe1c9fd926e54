import type { Format } from "../../../formats/format.ts";
import type { GrammarData } from "../../../formats/grammar/grammar.ts";
import type { JsonSchema, Tool } from "../../../generation/message.ts";

/**
 * What an answer is held to: made of the request and the format by the preparing thread, enforced beside the model by
 * `process/open-constraint.ts`. Plain data, which crosses from one thread to the other once.
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

/** A grammar of ours, or a client's, which stood at `path` in the request. */
export type PlannedGrammar =
  | {
      readonly type: "ours";
      readonly gbnf: string;
      /** What it can go on with from where a text has come; absent where it binds at once, and so never has to. */
      readonly data?: GrammarData;
    }
  | { readonly type: "gbnf"; readonly gbnf: string; readonly path: string };

/** What a finished answer is checked against, where the grammar does not hold all of it. */
export interface AnswerCheckPlan {
  readonly tools: readonly Tool[];
  /** Of the visible text. */
  readonly schema?: JsonSchema;
}
