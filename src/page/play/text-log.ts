import type { TokenLogprob } from "../../core/events.ts";
import { Changing } from "../parts/changing.ts";

/** A piece of text with the tokens that made it; `tokens` is empty where the server tells none. */
export interface Piece {
  readonly text: string;
  readonly tokens: readonly TokenLogprob[];
}

/** A text that grows. Its readers remember how many pieces they have shown: a long text is never joined for a few more words. */
export class TextLog extends Changing {
  readonly pieces: Piece[] = [];
  /** Of a character that is not complete: they belong to the piece that completes it. */
  #undecided: TokenLogprob[] = [];

  push(text: string, tokens: readonly TokenLogprob[] = []): void {
    if (text === "") {
      this.#undecided.push(...tokens);
      return;
    }
    const all = this.#undecided.length === 0 ? tokens : [...this.#undecided, ...tokens];
    this.#undecided = [];
    // Several tokens may come as one piece; each is shown by itself where its text is whole.
    if (all.length > 1 && all.map(({ token }) => token).join("") === text)
      for (const token of all) this.pieces.push({ text: token.token, tokens: [token] });
    else this.pieces.push({ text, tokens: all });
    this.changed();
  }

  get empty(): boolean {
    return this.pieces.length === 0;
  }

  get hasTokens(): boolean {
    return this.pieces.some(({ tokens }) => tokens.length > 0);
  }

  override toString(): string {
    return this.pieces.map(({ text }) => text).join("");
  }
}
