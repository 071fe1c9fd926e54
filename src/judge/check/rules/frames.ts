/**
 * A frame of a Server-Sent Events body and its place in the body. The body is split as strictly as clients do, by the HTML standard (section
 * 9.2.6, "Interpreting an event stream"), and nothing is repaired: the rules look for what needs a repair.
 */
export interface Frame {
  readonly index: number;
  /** Offsets into the body, in UTF-16 units: from the first line to past the blank line. */
  readonly start: number;
  readonly end: number;
  readonly lines: readonly SseLine[];
  /** The `data` lines joined by newlines; `null` without such lines. */
  readonly data: string | null;
  /** Offset of the first `data` value; `start` without one. */
  readonly dataStart: number;
  /** Whether a blank line ends it; `false` for a rest after the last blank line. */
  readonly closed: boolean;
}

export interface SseLine {
  readonly start: number;
  readonly end: number;
  /** "" for a comment. */
  readonly field: string;
  readonly value: string;
  readonly terminator: "\n" | "\r\n" | "\r" | "";
}

export function framesOf(body: string): Frame[] {
  const frames: Frame[] = [];
  let lines: SseLine[] = [];
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

function frameOf(index: number, start: number, end: number, lines: SseLine[], closed: boolean): Frame {
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

function* linesOf(body: string): Generator<SseLine> {
  const terminators = /\r\n|\n|\r/g;
  let start = 0;
  for (let match = terminators.exec(body); match; match = terminators.exec(body)) {
    yield lineOf(body, start, match.index, match[0] as SseLine["terminator"]);
    start = terminators.lastIndex;
  }
  if (start < body.length) yield lineOf(body, start, body.length, "");
}

function lineOf(body: string, start: number, end: number, terminator: SseLine["terminator"]): SseLine {
  const text = body.slice(start, end);
  const colon = text.indexOf(":");
  if (colon < 0) return { start, end, field: text, value: "", terminator };
  const value = text.slice(colon + 1);
  return { start, end, field: text.slice(0, colon), value: value.startsWith(" ") ? value.slice(1) : value, terminator };
}
