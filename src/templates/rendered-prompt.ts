/** A prompt, ready for a tokenizer. */
export interface RenderedPrompt {
  /** The whole prompt, without a leading beginning-of-sequence token: see `startsWithBos`. */
  readonly text: string;
  /** `text` in pieces, in order; concatenated they are `text`. None is empty. Each is tokenized on its own. */
  readonly spans: readonly PromptSpan[];
  /**
   * What the end of the prompt adds for the assistant's turn: the generation prompt with the response prefix, or the turn that is
   * continued. The answer's reader starts with it, as it may already be inside a thought. "" where the template adds nothing.
   */
  readonly generationPrefix: string;
  /**
   * The template wrote the model's BOS token at the start; it was taken off `text`, however often it stood there. The prompt needs
   * exactly one BOS when this is true or when the tokenizer adds one by itself, and none otherwise.
   */
  readonly startsWithBos: boolean;
  /** What was ignored, or looks like a mistake. For the log. */
  readonly warnings: readonly string[];
}

/** One piece of a prompt and how to tokenize it. */
export interface PromptSpan {
  readonly text: string;
  /**
   * true: special tokens in it are meant, tokenize with them. false: it came from the client and spells (part of) a special token;
   * tokenize it as plain text. Markup that a tokenizer would find in plain text, too, is cut in two such spans.
   */
  readonly special: boolean;
}
