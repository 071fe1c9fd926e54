import type { Frame, Line } from "./frames.ts";
import type { Offence } from "./rule.ts";
import type { ChoicePiece, Chunk } from "./view.ts";

/** An offence of a whole frame. */
export function atFrame(frame: Frame, found: string): Offence {
  return { start: frame.start, end: frame.lines.at(-1)?.end ?? frame.end, found };
}

export function atLine(line: Line, found: string): Offence {
  return { start: line.start, end: line.end, found };
}

/** An offence of one member of a chunk: its place is where the member's name first stands in the data, else the whole frame. */
export function atMember(chunk: Chunk, name: string, found: string): Offence {
  const { frame } = chunk;
  const inData = frame.data?.indexOf(`"${name}"`) ?? -1;
  if (inData < 0) return atFrame(frame, found);
  const start = frame.dataStart + inData;
  return { start, end: Math.min(start + name.length + 2, frame.end), found };
}

export function atPiece(piece: ChoicePiece, name: string, found: string): Offence {
  return atMember(piece.chunk, name, found);
}

/** What is missing at the end of a body has its place there. */
export function atEnd(body: string, found: string): Offence {
  return { start: body.length, end: body.length, found };
}

/** A value in a sentence, cut to a readable length. */
export function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
