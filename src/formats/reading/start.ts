import type { Reasoning } from "../format.ts";

interface StartOptions {
  readonly prefix?: string;
  readonly thinking?: boolean;
}

export interface Start {
  /** "unknown": if a close precedes any opener, the text before it is reasoning. */
  readonly place: "inside" | "outside" | "unknown";
  /** The end of the prompt is unknown, so the model may write the opener itself. */
  readonly assumed: boolean;
}

/**
 * Where a text starts. If the end of the prompt is known, it decides; otherwise the request, if the template opens reasoning on request;
 * otherwise the default of the format.
 */
export function textStart(reasoning: Reasoning | undefined, { prefix, thinking }: StartOptions): Start {
  if (!reasoning) return { place: "outside", assumed: false };
  if (prefix !== undefined) {
    return { place: openReasoning(reasoning, prefix) === null ? "outside" : "inside", assumed: false };
  }
  if (thinking === false) return { place: "outside", assumed: true };
  if (thinking === true && reasoning.askedMeansInside === true) return { place: "inside", assumed: true };
  return { place: reasoning.assume, assumed: true };
}

/** The reasoning that the end of the prompt has opened and not closed, without its opener. null if it has opened none. */
export function openReasoning(reasoning: Reasoning, prefix: string): string | null {
  let at = -1;
  for (const open of reasoning.open) {
    const found = prefix.lastIndexOf(open);
    if (found >= 0) at = Math.max(at, found + open.length);
  }
  if (at < 0) return null;
  const rest = prefix.slice(at);
  return reasoning.close.some((close) => rest.includes(close)) ? null : rest;
}
