import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";

/** A part of a request's time. "first token": what happens before the first token is not known. "whole": there was no stream. */
export type PhaseName = "preparing" | "queue" | "prefill" | "first token" | "generation" | "whole" | "other";

export interface Phase {
  readonly name: PhaseName;
  /** In milliseconds. */
  readonly ms: number;
}

/** The time of a request on the axis of its thread. Times are in milliseconds since the thread's first request. */
export interface RequestBar {
  readonly request: RequestSummary;
  readonly start: number;
  readonly end: number;
  readonly phases: readonly Phase[];
  /** The time since all earlier requests had ended; 0 if one of them had not. */
  readonly gap: number;
}

/** The bars of requests, the oldest first. `now`: the Unix time, in milliseconds, at which open requests end. */
export function barsOf(requests: readonly RequestSummary[], now: number): RequestBar[] {
  const ordered = requests.toSorted((a, b) => a.at - b.at || a.number - b.number);
  const origin = ordered[0]?.at ?? 0;
  let latest = 0;
  return ordered.map((request, index) => {
    const start = request.at - origin;
    const ms = request.outcome === "open" ? Math.max(request.ms, now - request.at) : request.ms;
    const gap = index === 0 ? 0 : Math.max(0, start - latest);
    latest = Math.max(latest, start + ms);
    return { request, start, end: start + ms, phases: phasesOf(request, ms), gap };
  });
}

/** The phases of a request of this duration, one after the other; those of no time are left out. */
function phasesOf({ phases, first_ms: firstMs, outcome }: RequestSummary, ms: number): Phase[] {
  const known: Phase[] = phases
    ? (["preparing", "queue", "prefill", "generation"] as const).map((name) => ({ name, ms: phases[name] }))
    : firstMs === undefined
      ? [{ name: outcome === "open" ? "first token" : "whole", ms }]
      : [
          { name: "first token", ms: firstMs },
          { name: "generation", ms: ms - firstMs },
        ];
  let left = ms;
  const shown = known.map((phase) => {
    const length = Math.max(0, Math.min(phase.ms, left));
    left -= length;
    return { name: phase.name, ms: length };
  });
  return [...shown, { name: "other" as const, ms: left }].filter((phase) => phase.ms > 0.005);
}

/** A time axis in which nothing happens for a while, from `start` to `end`. */
export interface ShortenedGap {
  readonly start: number;
  readonly end: number;
}

export interface TimeAxis {
  /** The position of a time, from 0 to 1. */
  readonly position: (ms: number) => number;
  readonly shortened: readonly ShortenedGap[];
}

/** The share of the axis that all shortened gaps take together. */
const gapShare = 0.2;
/** A gap of at least this share of the time of the requests is long. */
const longShare = 0.1;

/** An axis for the bars. `shorten`: gaps that are long, compared with the requests, are shown shorter than they are. */
export function timeAxis(bars: readonly RequestBar[], shorten: boolean): TimeAxis {
  const end = Math.max(1, ...bars.map((bar) => bar.end));
  const idle = bars.reduce((sum, { gap }) => sum + gap, 0);
  const busy = Math.max(1, end - idle);
  const shortened = shorten
    ? bars.filter(({ gap }) => gap > busy * longShare).map(({ start, gap }) => ({ start: start - gap, end: start }))
    : [];
  const gapLength = Math.min(busy * longShare, (busy * gapShare) / Math.max(1, shortened.length));
  /** The time before `ms` that is not shown. */
  const cut = (ms: number): number => {
    let sum = 0;
    for (const gap of shortened) {
      const length = gap.end - gap.start;
      if (ms >= gap.end) sum += length - gapLength;
      else if (ms > gap.start) return sum + (ms - gap.start) * (1 - gapLength / length);
      else break;
    }
    return sum;
  };
  const shown = end - cut(end);
  return { position: (ms) => Math.min(1, Math.max(0, (ms - cut(ms)) / shown)), shortened };
}
