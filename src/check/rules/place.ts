import type { Frame, SseLine } from "./frames.ts";
import type { Violation } from "./rule.ts";
import type { ChoicePart, Chunk } from "./view.ts";

/** Returns a violation by a whole frame. */
export function atFrame(frame: Frame, found: string): Violation {
  return { start: frame.start, end: frame.lines.at(-1)?.end ?? frame.end, found };
}

export function atLine(line: SseLine, found: string): Violation {
  return { start: line.start, end: line.end, found };
}

/** Returns a violation by a member of a chunk. Its place is the first occurrence of the name in the data, or the whole frame. */
export function atMember(chunk: Chunk, name: string, found: string): Violation {
  const { frame } = chunk;
  const inData = frame.data?.indexOf(`"${name}"`) ?? -1;
  if (inData < 0) return atFrame(frame, found);
  const start = frame.dataStart + inData;
  return { start, end: Math.min(start + name.length + 2, frame.end), found };
}

export function atChoicePart(piece: ChoicePart, name: string, found: string): Violation {
  return atMember(piece.chunk, name, found);
}

/** Returns a violation at the end of a body, for what is missing there. */
export function atEnd(body: string, found: string): Violation {
  return { start: body.length, end: body.length, found };
}

/** Returns a value as JSON for a sentence, at most 60 characters long. */
export function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
