import type { InspectedPrompt } from "../../core/inspection.ts";
import type { Mark } from "../judge/mark-painter.ts";

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
