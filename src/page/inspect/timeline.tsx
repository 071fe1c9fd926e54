import type { VNode } from "preact";
import { countInWords, timeInWords } from "./words.ts";

interface Properties {
  /** Times of the chunks, in milliseconds, in order. */
  readonly times: readonly number[];
  /** The end of the line, in milliseconds. */
  readonly until: number;
  readonly label: string;
}

/** Length of the line in units; chunks on the same unit share one stroke. */
const units = 1000;

/** Pieces as strokes on a line of time. */
export function Timeline({ times, until, label }: Properties): VNode {
  const places = new Set(times.map((ms) => Math.round((ms / Math.max(until, 1)) * units)));
  const strokes = [...places].map((place) => `M${place} 1v14`).join("");
  return (
    <figure class="timeline">
      <figcaption>{label}</figcaption>
      <svg viewBox={`0 0 ${units} 16`} preserveAspectRatio="none" role="img" aria-label={inWords(label, times)}>
        <path class="base" d={`M0 8h${units}`} />
        <path d={strokes} />
      </svg>
    </figure>
  );
}

function inWords(label: string, times: readonly number[]): string {
  const [first] = times;
  const last = times.at(-1);
  if (first === undefined || last === undefined) return `${label}: nothing`;
  return `${label}: ${countInWords(times.length, "chunk")}, from ${timeInWords(first)} to ${timeInWords(last)}`;
}
