/**
 * The frames of a Server-Sent Events body with their places in it. Strict where a client is: it splits as the HTML standard says
 * (section 9.2.6, "Interpreting an event stream") and mends nothing, since what needs mending is what the rules look for.
 */
export interface Frame {
  readonly index: number;
  /** Offsets into the body, in UTF-16 units: from the first line to past the blank line. */
  readonly start: number;
  readonly end: number;
  readonly lines: readonly Line[];
  /** The `data` lines joined by newlines; null when there are none. */
  readonly data: string | null;
  /** Where the first `data` value begins; `start` when there is none. */
  readonly dataStart: number;
  /** Whether a blank line ended it; false for what stands after the last one. */
  readonly closed: boolean;
}

export interface Line {
  readonly start: number;
  readonly end: number;
  /** "" for a comment. */
  readonly field: string;
  readonly value: string;
  readonly terminator: "\n" | "\r\n" | "\r" | "";
}

export function framesOf(body: string): Frame[] {
  const frames: Frame[] = [];
  let lines: Line[] = [];
  const close = (end: number, closed: boolean) => {
    const [first] = lines;
    if (first) frames.push(frameOf(frames.length, first.start, end, lines, closed));
    lines = [];
  };
  for (const line of linesOf(body)) {
    if (line.end === line.start) close(line.end + line.terminator.length, true);
    else lines.push(line);
  }
  close(body.length, false);
  return frames;
}

function frameOf(index: number, start: number, end: number, lines: Line[], closed: boolean): Frame {
  const data = lines.filter((line) => line.field === "data");
  const [first] = data;
  return {
    index,
    start,
    end,
    lines,
    closed,
    data: first ? data.map((line) => line.value).join("\n") : null,
    dataStart: first ? first.end - first.value.length : start,
  };
}

function* linesOf(body: string): Generator<Line> {
  const breaks = /\r\n|\n|\r/g;
  let start = 0;
  for (let match = breaks.exec(body); match; match = breaks.exec(body)) {
    yield lineOf(body, start, match.index, match[0] as Line["terminator"]);
    start = breaks.lastIndex;
  }
  if (start < body.length) yield lineOf(body, start, body.length, "");
}

function lineOf(body: string, start: number, end: number, terminator: Line["terminator"]): Line {
  const text = body.slice(start, end);
  const colon = text.indexOf(":");
  if (colon < 0) return { start, end, field: text, value: "", terminator };
  const value = text.slice(colon + 1);
  return { start, end, field: text.slice(0, colon), value: value.startsWith(" ") ? value.slice(1) : value, terminator };
}
