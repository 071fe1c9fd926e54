import type { AudioPart, ImagePart } from "../../wire/core/message.ts";

/** A prompt, ready for a tokenizer. */
export interface RenderedPrompt {
  /** The prompt without a leading BOS token: see `startsWithBos`. */
  readonly text: string;
  /** `text` split into spans that are tokenized separately. No span is empty. */
  readonly spans: readonly PromptSpan[];
  /**
   * The end of the prompt that belongs to the answer: the generation prompt with the response prefix, or the message that is continued.
   * Parsing of the answer starts with it, since it may open reasoning. "" if the template adds nothing.
   */
  readonly generationPrefix: string;
  /**
   * The template wrote the model's BOS token, once or several times, at the start; it is not in `text`. The prompt needs exactly one BOS
   * if this is true or if the tokenizer adds one by itself, and none otherwise.
   */
  readonly startsWithBos: boolean;
  /** The images and recordings of the conversation, in its order. A template may leave some out. */
  readonly media: readonly RenderedMedium[];
  /** Ignored options and possible mistakes, for the log. */
  readonly warnings: readonly string[];
}

/** A part of a prompt and how to tokenize it. */
export interface PromptSpan {
  readonly text: string;
  /**
   * true: tokenize with special tokens. false: client text that spells a special token or a part of one; tokenize it as plain text.
   * Markup that a tokenizer finds in plain text, too, is divided into two such spans.
   */
  readonly special: boolean;
  /** The span is not text, but the medium of this index in `RenderedPrompt.media`; `text` shows where it is. */
  readonly medium?: number;
}

/** An image or a recording in a prompt. */
export interface RenderedMedium {
  readonly part: ImagePart | AudioPart;
  /** Its path in the client's request. */
  readonly path: string;
}
