import type { TokenLogprob } from "../../wire/core/events.ts";
import type { TextChunk } from "./text-log.ts";

/** A block begins at the first line that begins after this many characters of the previous block, … */
const blockLength = 3000;
/** … and at the latest here: a text without line ends gets one that it has not. */
const maxBlockLength = 6000;

/**
 * Paints a text that grows, in blocks of some lines. A browser lays out those that are in sight (`content-visibility` in page.css), and
 * only the last one again: another word costs the same after a hundred thousand.
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

  /** Paints the chunks that are new since the last call. */
  paint(chunks: readonly TextChunk[]): void {
    while (this.#painted < chunks.length) {
      const chunk = chunks[this.#painted];
      if (chunk) this.#append(chunk, this.#painted);
      this.#painted++;
    }
  }

  #append({ text, tokens }: TextChunk, index: number): void {
    if (tokens.length > 0) {
      const span = document.createElement("span");
      span.dataset["chunk"] = String(index);
      span.dataset["sure"] = String(sureness(tokens));
      span.textContent = text;
      this.#currentBlock().append(span);
      this.#text = undefined;
      this.#grow(text);
      return;
    }
    // A whole answer may arrive as one chunk: it is split at its lines.
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
    this.#block.dir = "auto";
    this.#root.append(this.#block);
    this.#length = 0;
    this.#text = undefined;
    return this.#block;
  }

  #grow(text: string): void {
    this.#length += text.length;
    if ((this.#length > blockLength && text.endsWith("\n")) || this.#length > maxBlockLength) this.#block = undefined;
  }
}

/** From 4, nearly certain, to 0, a surprise: what page.css tints. Of several tokens, the least sure counts. */
function sureness(tokens: readonly TokenLogprob[]): number {
  const probability = Math.exp(Math.min(...tokens.map(({ logprob }) => logprob ?? 0)));
  return [0.05, 0.2, 0.5, 0.9].filter((limit) => probability >= limit).length;
}
