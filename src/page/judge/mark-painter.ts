/** A place of a text that is worth a mark. */
export interface Mark {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  readonly severity: string;
  readonly title: string;
}

/** A block ends with the first line that ends after this many characters; only visible blocks are laid out (page.css). */
const blockLength = 3000;
/** A line that is longer is broken here. */
const maxBlockLength = 20_000;
/** Number of characters that are painted before the page yields. */
const atOnce = 300_000;

/** Paints a text with its marks into an element. `signal` ends the work. Resolves when all is painted. */
export async function paintMarked(
  root: HTMLElement,
  text: string,
  marks: readonly Mark[],
  signal: AbortSignal,
): Promise<void> {
  root.textContent = "";
  const inOrder = apart(marks);
  let next = 0;
  let painted = 0;
  for (let from = 0; from < text.length && !signal.aborted;) {
    const end = blockEnd(text, from, inOrder, next);
    const block = document.createElement("div");
    block.className = "block";
    const within: Mark[] = [];
    for (let mark = inOrder[next]; mark && mark.start < end; mark = inOrder[++next]) within.push(mark);
    appendMarked(block, text.slice(from, end), from, within);
    root.append(block);
    painted += end - from;
    from = end;
    if (painted < atOnce) continue;
    painted = 0;
    await new Promise((resolve) => setTimeout(resolve));
  }
}

/** Appends the part of a text that begins at `offset`, with the marks inside it, which are ordered and do not overlap. */
export function appendMarked(parent: HTMLElement, part: string, offset: number, marks: readonly Mark[]): void {
  let at = 0;
  for (const mark of marks) {
    const [start, end] = [mark.start - offset, mark.end - offset];
    parent.append(part.slice(at, start), marked(part.slice(start, end), mark));
    at = end;
  }
  parent.append(part.slice(at));
}

/** At a line's end, where one is near, and within no mark. */
function blockEnd(text: string, from: number, marks: readonly Mark[], next: number): number {
  const lineEnd = text.indexOf("\n", from + blockLength) + 1 || text.length;
  let end = Math.min(lineEnd, from + maxBlockLength);
  for (let at = next, mark = marks[at]; mark && mark.start < end; mark = marks[++at]) end = Math.max(end, mark.end);
  return end;
}

/** In order and side by side: where marks lie one within another, the inner one is seen. */
function apart(marks: readonly Mark[]): Mark[] {
  const edges = [...new Set(marks.flatMap(({ start, end }) => [start, end]))].toSorted((a, b) => a - b);
  const narrowFirst = marks.toSorted((a, b) => a.end - a.start - (b.end - b.start));
  const parts = narrowFirst.filter(({ start, end }) => start === end);
  for (const [at, start] of edges.entries()) {
    const end = edges[at + 1] ?? start;
    const inner = narrowFirst.find((mark) => mark.start <= start && mark.end >= end && end > start);
    if (inner) parts.push({ ...inner, start, end });
  }
  return parts.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

function marked(text: string, { severity, title, start }: Mark): HTMLElement {
  const element = document.createElement("mark");
  element.className = severity;
  element.title = title;
  element.dataset["start"] = String(start);
  // What is missing has no text, and is marked all the same.
  element.textContent = text === "" ? "▮" : text;
  return element;
}
