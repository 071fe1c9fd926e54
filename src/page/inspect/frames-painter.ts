import type { TimedText, TapeContents } from "../../judge/inspect/inspected-request.ts";
import { appendMarked } from "../judge/mark-painter.ts";
import type { Mark } from "../judge/mark-painter.ts";
import { timeInWords } from "./words.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** Number of frames in a block; only visible blocks are laid out (page.css). */
const perBlock = 25;
/** Number of frames that are painted before the page yields. */
const atOnce = 500;

/** Appends timed chunks of a text to an element, one below the other. */
export class FramesPainter {
  readonly #root: HTMLElement;
  readonly #marks: readonly Mark[];
  #block: HTMLElement | undefined;
  #painted = 0;
  /** Offset of the next chunk in the whole text, in characters. */
  #offset = 0;
  #nextMark = 0;
  #last = 0;
  #after: number | undefined;

  /** @param marks Ordered by offset, each within one chunk. */
  constructor(root: HTMLElement, marks: readonly Mark[]) {
    root.textContent = "";
    this.#root = root;
    this.#marks = marks;
  }

  /** Paints what was not there last time. Resolves when all is painted, or `signal` is aborted. */
  async paint({ chunks, left_out: leftOut }: TapeContents<TimedText>, signal: AbortSignal): Promise<void> {
    this.#after = leftOut?.after;
    while (this.#painted < chunks.length && !signal.aborted) {
      const chunk = chunks[this.#painted];
      if (leftOut && this.#painted === this.#after) {
        this.#append("", `… ${countInWords(leftOut.chunks, "chunk")} were not kept in memory …`, []);
        this.#offset += leftOut.characters;
      }
      if (chunk) this.#paintOne(chunk);
      this.#painted++;
      if (this.#painted % atOnce === 0) await new Promise((resolve) => setTimeout(resolve));
    }
  }

  #paintOne({ ms, text }: TimedText): void {
    const end = this.#offset + text.length;
    const marks: Mark[] = [];
    for (let mark = this.#marks[this.#nextMark]; mark && mark.start < end; mark = this.#marks[++this.#nextMark])
      if (mark.start >= this.#offset) marks.push(mark);
    const pause = ms - this.#last;
    this.#append(
      `${timeInWords(ms)}${this.#painted > 0 && pause >= 1000 ? ` (after ${timeInWords(pause)})` : ""}`,
      text,
      marks,
    );
    this.#last = ms;
    this.#offset = end;
  }

  #append(time: string, text: string, marks: readonly Mark[]): void {
    if (!this.#block || this.#block.childElementCount >= perBlock) {
      this.#block = document.createElement("div");
      this.#block.className = "block";
      this.#root.append(this.#block);
    }
    const frame = document.createElement("div");
    frame.className = "frame";
    const at = document.createElement("span");
    at.textContent = time;
    const said = document.createElement("code");
    let end = text.length;
    while (text[end - 1] === "\n") end--;
    appendMarked(said, text.slice(0, end), this.#offset, marks);
    frame.append(at, said);
    this.#block.append(frame);
  }
}
