import type { InspectedPrompt } from "../../wire/core/inspection.ts";
import type { Mark } from "../parts/line-painter.ts";
import type { ShownRepair, TimedText, TapeContents } from "../../judge/inspect/inspected-request.ts";

/** What of a prompt is marked, and where what the model had in its cache ends. */
export interface PromptMarks {
  readonly marks: readonly Mark[];
  /** In characters; undefined: not known. */
  readonly cachedEnd: number | undefined;
}

/** `cached`: how many tokens were in the cache; undefined: not known. */
export function promptMarks({ lengths, control, quotes }: InspectedPrompt, cached: number | undefined): PromptMarks {
  const starts: number[] = [];
  let end = 0;
  for (const length of lengths) {
    starts.push(end);
    end += length;
  }
  const marks = [
    ...control.map((at): Mark => {
      const start = starts[at] ?? 0;
      return { start, end: start + (lengths[at] ?? 0), severity: "control", title: "A control token" };
    }),
    ...quotes.map(({ start, end, role }): Mark => ({
      start,
      end,
      severity: `quote from-${role}`,
      title: saidBy(role),
    })),
  ];
  const isKnown = cached !== undefined && lengths.length > 0;
  return { marks, cachedEnd: isKnown ? (starts[cached] ?? end) : undefined };
}

function saidBy(role: string): string {
  return role === "tool" ? "A tool's result" : `A message of the role ${role}`;
}

/** The places of repairs in what a server sent, in order: one mark for each frame, from its beginning to the end of its line. */
export function repairMarks(
  { chunks, left_out: leftOut }: TapeContents<TimedText>,
  repairs: readonly ShownRepair[],
): Mark[] {
  const sentences = new Map<number, Set<string>>();
  for (const { at, sentence } of repairs) {
    if (at === undefined) continue;
    const known = sentences.get(at);
    if (known) known.add(sentence);
    else sentences.set(at, new Set([sentence]));
  }
  const places = [...sentences.keys()].toSorted((a, b) => a - b);
  const marks: Mark[] = [];
  let next = 0;
  let offset = 0;
  for (const [index, { text }] of chunks.entries()) {
    if (index === leftOut?.after) offset += leftOut.characters;
    while ((places[next] ?? Infinity) < offset) next++;
    const isLast = index === chunks.length - 1;
    for (let at = places[next]; at !== undefined; at = places[++next]) {
      const end = offset + text.length;
      if (at > end || (at === end && !isLast)) break;
      // A repair of missing text at the end is marked after the last character.
      const start = Math.min(at, offset + text.trimEnd().length);
      const lineEnd = text.indexOf("\n", start - offset);
      const title = [...(sentences.get(at) ?? [])].join(" ");
      marks.push({ start, end: lineEnd === -1 ? end : offset + lineEnd, severity: "warning", title });
    }
    offset += text.length;
  }
  return marks;
}
