import type { TakenMedia } from "../../../wire/core/unreadable-part.ts";

/** Facts about an open model that requests are prepared with. */
export interface ModelFacts {
  /** The file that was loaded. */
  readonly path: string;
  readonly architecture: string;
  readonly contextSize: number;
  readonly chatTemplate: string | null;
  readonly bosToken: string | null;
  readonly eosToken: string | null;
  /** Texts of the control tokens, which client text must not become. */
  readonly specialTokens: readonly string[];
  /** Texts of the user-defined tokens, which the tokenizer also finds in plain text. */
  readonly markupTokens: readonly string[];
  readonly vocabularySize: number;
  /** Maximum length of a token's text in UTF-16 units. */
  readonly maxTokenLength: number;
  /** What the model's projector encodes. */
  readonly takes: TakenMedia;
  /** What the model needs to take images, if it does not. */
  readonly imageHint?: string;
  /** The vocabulary has tokens for fill-in-the-middle. */
  readonly fillsInMiddle: boolean;
}
