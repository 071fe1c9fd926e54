import { render } from "preact";
import type { VNode } from "preact";
import { BlockSplitter } from "./block-splitter.ts";
import type { MarkdownBlock } from "./block-splitter.ts";
import { BlockView } from "./block-view.tsx";

/** A group of blocks is closed with the block that makes it longer than this. In characters. */
const groupLength = 3000;

/**
 * Paints a Markdown text that grows. Blocks that are closed are not parsed or rendered again. They are grouped into elements which a browser
 * lays out only in sight (`content-visibility` in page.css).
 */
export class MarkdownPainter {
  readonly #root: HTMLElement;
  #splitter = new BlockSplitter();
  #group: HTMLElement | undefined;
  #blocks: VNode[] = [];
  #length = 0;
  #count = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  /** Appends text. `open`: more text will follow. */
  paint(text: string, open: boolean): void {
    for (const block of this.#splitter.push(text)) {
      this.#blocks.push(this.#view(block, false));
      this.#count++;
      this.#length += lengthOf(block);
      if (this.#length < groupLength) continue;
      this.#render(this.#blocks);
      this.#group = undefined;
      this.#blocks = [];
      this.#length = 0;
    }
    const rest = this.#splitter.open;
    const last = rest && this.#view(rest, open);
    if (last || this.#blocks.length > 0) this.#render(last ? [...this.#blocks, last] : this.#blocks);
  }

  /** Removes everything; the next text is a new one. */
  clear(): void {
    for (const group of this.#root.children) render(null, group);
    this.#root.textContent = "";
    this.#splitter = new BlockSplitter();
    this.#group = undefined;
    this.#blocks = [];
    this.#length = 0;
    this.#count = 0;
  }

  #view(block: MarkdownBlock, open: boolean): VNode {
    return <BlockView key={this.#count} block={block} open={open} first={this.#count === 0} />;
  }

  #render(blocks: readonly VNode[]): void {
    if (!this.#group) {
      this.#group = document.createElement("div");
      this.#group.className = "block";
      this.#root.append(this.#group);
    }
    render(<>{blocks}</>, this.#group);
  }
}

function lengthOf(block: MarkdownBlock): number {
  return block.kind === "markdown" ? block.source.length : block.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
}
