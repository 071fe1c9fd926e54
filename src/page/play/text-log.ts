import type { TokenLogprob } from "../../wire/core/events.ts";
import { Changing } from "../parts/changing.ts";

/** A chunk of text with its tokens; `tokens` is empty if the server sends no logprobs. */
export interface TextChunk {
  readonly text: string;
  readonly tokens: readonly TokenLogprob[];
}

/** A text that grows. Its readers remember how many chunks they have shown, so that a long text is not joined for each new one. */
export class TextLog extends Changing {
  readonly chunks: TextChunk[] = [];
  /** Tokens without text, such as those of an incomplete character; they belong to the next chunk with text. */
  #undecided: TokenLogprob[] = [];
  /** The text of the first `#joined` chunks. */
  #text = "";
  #joined = 0;

  push(text: string, tokens: readonly TokenLogprob[] = []): void {
    if (text === "") {
      this.#undecided.push(...tokens);
      return;
    }
    const all = this.#undecided.length === 0 ? tokens : [...this.#undecided, ...tokens];
    this.#undecided = [];
    // Several tokens may arrive as one chunk; each with complete text is shown separately.
    if (all.length > 1 && all.map(({ token }) => token).join("") === text) {
      for (const token of all) {
        this.#undecided.push(token);
        if (token.token === "") continue;
        this.chunks.push({ text: token.token, tokens: this.#undecided });
        this.#undecided = [];
      }
    } else this.chunks.push({ text, tokens: all });
    this.changed();
  }

  get empty(): boolean {
    return this.chunks.length === 0;
  }

  get hasTokens(): boolean {
    return this.chunks.some(({ tokens }) => tokens.length > 0);
  }

  override toString(): string {
    // Only the chunks since the last call: a growing text is stored again and again.
    for (; this.#joined < this.chunks.length; this.#joined++) this.#text += this.chunks[this.#joined]?.text ?? "";
    return this.#text;
  }
}
