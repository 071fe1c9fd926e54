/** What there is to know of an open model. */
export interface ModelFacts {
  /** The file that was loaded. */
  readonly path: string;
  readonly architecture: string;
  readonly contextSize: number;
  readonly chatTemplate: string | null;
  readonly bosToken: string | null;
  readonly eosToken: string | null;
  /** Texts of the control tokens, which a client's text must not become. */
  readonly specialTokens: readonly string[];
  /** Texts of the user-defined tokens, which the tokenizer makes of plain text, too. */
  readonly markupTokens: readonly string[];
  readonly vocabularySize: number;
  /** No token stands for more UTF-16 units of text than this. */
  readonly longestToken: number;
  /** It has tokens for a prompt with a suffix. */
  readonly fillsInMiddle: boolean;
}
