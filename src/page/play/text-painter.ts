import type { TokenLogprob } from "../../core/events.ts";
import type { Piece } from "./text-log.ts";

/** A block begins at the first line that begins beyond so many characters of the one before, … */
const blockLength = 3000;
/** … and at the latest here: a text without line ends gets one that it has not. */
const longestBlock = 6000;

/**
 * Paints a text that grows, in blocks of some lines. A browser lays out those that are in sight (`content-visibility` in page.css), and
 * anew only the last: a word more costs the same after a hundred thousand.
 */
export class TextPainter {
  readonly #root: HTMLElement;
  #block: HTMLElement | undefined;
  #length = 0;
  #text: Text | undefined;
  #painted = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Paints the pieces that were not there last time. */
  paint(pieces: readonly Piece[]): void {
    while (this.#painted < pieces.length) {
      const piece = pieces[this.#painted];
      if (piece) this.#append(piece, this.#painted);
      this.#painted++;
    }
  }

  #append({ text, tokens }: Piece, index: number): void {
    if (tokens.length > 0) {
      const span = document.createElement("span");
      span.dataset["piece"] = String(index);
      span.dataset["sure"] = String(sureness(tokens));
      span.textContent = text;
      this.#currentBlock().append(span);
      this.#text = undefined;
      this.#grow(text);
      return;
    }
    // A whole answer may come as one piece: it is cut at its lines.
    for (let from = 0; from < text.length;) {
      const end =
        text.length - from <= blockLength ? text.length : text.indexOf("\n", from + blockLength) + 1 || text.length;
      const part = text.slice(from, end);
      const block = this.#currentBlock();
      if (this.#text) this.#text.appendData(part);
      else block.append((this.#text = document.createTextNode(part)));
      this.#grow(part);
      from = end;
    }
  }

  #currentBlock(): HTMLElement {
    if (this.#block) return this.#block;
    this.#block = document.createElement("div");
    this.#block.className = "block";
    this.#root.append(this.#block);
    this.#length = 0;
    this.#text = undefined;
    return this.#block;
  }

  #grow(text: string): void {
    this.#length += text.length;
    if ((this.#length > blockLength && text.endsWith("\n")) || this.#length > longestBlock) this.#block = undefined;
  }
}

/** From 4, nearly certain, to 0, a surprise: what page.css tints. Of several tokens, the least sure counts. */
function sureness(tokens: readonly TokenLogprob[]): number {
  const probability = Math.exp(Math.min(...tokens.map(({ logprob }) => logprob ?? 0)));
  return [0.05, 0.2, 0.5, 0.9].filter((limit) => probability >= limit).length;
}
