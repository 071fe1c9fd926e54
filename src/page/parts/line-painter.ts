/** A place of a text that is worth a mark. */
export interface Mark {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  readonly severity: string;
  readonly title: string;
}

/** A block ends with the first line that ends after this many characters, … */
const blockLength = 3000;
/** … and at the latest here: a text without line ends gets one that it has not. */
const maxBlockLength = 6000;

/**
 * Paints a text of any length into an element, in blocks of some lines. A browser lays out those that are in sight (`content-visibility` in
 * page.css), and of a text that grows, only the last one again. The whole text is in the document, where it can be selected and searched.
 */
export class LinePainter {
  readonly #root: HTMLElement;
  readonly #marks: readonly Mark[];
  #nextMark = 0;
  /** Of the next part in the whole text, in characters. */
  #offset = 0;
  #block: HTMLElement | undefined;
  #length = 0;
  #text: Text | undefined;
  /** The elements that contain parts of the text, and where these begin. */
  readonly #parts: { readonly start: number; readonly element: HTMLElement }[] = [];

  constructor(root: HTMLElement, marks: readonly Mark[] = []) {
    root.textContent = "";
    this.#root = root;
    this.#marks = apart(marks);
  }

  /** Appends a part of the text. */
  write(text: string): void {
    for (let from = 0; from < text.length;) {
      const block = this.#currentBlock();
      const end = this.#blockEnd(text, from);
      const part = text.slice(from, end);
      this.#fill(block, part);
      this.#grow(part);
      from = end;
    }
  }

  /** Appends a part of the text in an element of its own. `inner` is inside `element`, and gets what is `shown` of the text. */
  add(text: string, element: HTMLElement, inner: HTMLElement = element, shown: string = text): void {
    this.#currentBlock().append(element);
    this.#fill(inner, shown);
    this.#text = undefined;
    this.#grow(text);
  }

  /** Leaves a part of the text out. */
  skip(characters: number): void {
    this.#offset += characters;
  }

  /** Scrolls to a part of the text, and highlights it where the browser can. */
  show(start: number, end: number): void {
    const [from, to] = [this.#pointAt(start), this.#pointAt(end)];
    if (!from || !to) return;
    const range = document.createRange();
    range.setStart(...from);
    range.setEnd(...to);
    range.startContainer.parentElement?.scrollIntoView({ block: "center" });
    const [place, box] = [range.getBoundingClientRect(), this.#root.getBoundingClientRect()];
    if (place.height > 0) this.#root.scrollTop += place.top - box.top - box.height / 2;
    if ("highlights" in CSS) CSS.highlights.set("found", new Highlight(range));
  }

  /** The part of the text in a range of the document, without the line ends and signs that only the page has. */
  textIn(range: Range): string {
    const inside = this.#parts.filter(({ element }) => range.intersectsNode(element));
    return inside
      .map(({ element }) => {
        const part = document.createRange();
        part.selectNodeContents(element);
        if (element.contains(range.startContainer)) part.setStart(range.startContainer, range.startOffset);
        if (element.contains(range.endContainer)) part.setEnd(range.endContainer, range.endOffset);
        const copy = part.cloneContents();
        for (const missing of copy.querySelectorAll(".missing")) missing.remove();
        return copy.textContent ?? "";
      })
      .join("");
  }

  #pointAt(offset: number): [Node, number] | undefined {
    const part = this.#parts.findLast(({ start }) => start <= offset);
    if (!part) return undefined;
    let left = offset - part.start;
    let last: [Node, number] | undefined;
    const texts = document.createTreeWalker(part.element, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      if (node.parentElement?.className.endsWith("missing")) continue;
      const { length } = node.nodeValue ?? "";
      if (left < length) return [node, left];
      last = [node, length];
      left -= length;
    }
    return last;
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
    this.#offset += text.length;
    this.#length += text.length;
    if ((this.#length > blockLength && text.endsWith("\n")) || this.#length >= maxBlockLength) this.#block = undefined;
  }

  /** At a line's end, where one is near, and within no character. */
  #blockEnd(text: string, from: number): number {
    const most = from + Math.max(1, maxBlockLength - this.#length);
    if (text.length <= from + blockLength - this.#length) return text.length;
    const lineEnd = text.indexOf("\n", from + Math.max(0, blockLength - this.#length)) + 1 || text.length;
    const end = Math.min(lineEnd, most);
    return end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? "") ? end + 1 : end;
  }

  /** Appends the next part of the text to an element, with the marks inside it. */
  #fill(parent: HTMLElement, text: string): void {
    if (this.#parts.at(-1)?.element !== parent) this.#parts.push({ start: this.#offset, element: parent });
    let at = 0;
    const end = this.#offset + text.length;
    for (let mark = this.#marks[this.#nextMark]; mark && mark.start < end; mark = this.#marks[++this.#nextMark]) {
      const from = Math.max(mark.start - this.#offset, 0);
      const to = Math.min(mark.end, end) - this.#offset;
      if (to > from || mark.start - this.#offset === to) {
        this.#append(parent, text.slice(at, from));
        parent.append(marked(text.slice(from, to), mark));
        this.#text = undefined;
        at = to;
      }
      // The next part has the rest of it.
      if (mark.end > end) break;
    }
    this.#append(parent, text.slice(at));
  }

  #append(parent: HTMLElement, text: string): void {
    if (text === "") return;
    if (this.#text?.parentNode === parent) this.#text.appendData(text);
    else parent.append((this.#text = document.createTextNode(text)));
  }
}

/** In order and side by side: where marks lie one within another, the inner one is seen. */
function apart(marks: readonly Mark[]): Mark[] {
  const parts = marks.filter(({ start, end }) => start === end);
  const waiting = marks.filter(({ start, end }) => start < end).toSorted((a, b) => a.start - b.start);
  const edges = [...new Set(waiting.flatMap(({ start, end }) => [start, end]))].toSorted((a, b) => a - b);
  let open: Mark[] = [];
  let next = 0;
  for (const [at, start] of edges.entries()) {
    open = open.filter(({ end }) => end > start);
    for (let mark = waiting[next]; mark?.start === start; mark = waiting[++next]) open.push(mark);
    const [inner] = open.toSorted((a, b) => a.end - a.start - (b.end - b.start));
    if (inner) parts.push({ ...inner, start, end: edges[at + 1] ?? inner.end });
  }
  return parts.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

function marked(text: string, { severity, title }: Mark): HTMLElement {
  const element = document.createElement("mark");
  element.title = title;
  // What is missing has no text, and is marked all the same.
  element.className = text === "" ? `${severity} missing` : severity;
  element.textContent = text === "" ? "▮" : text;
  return element;
}
