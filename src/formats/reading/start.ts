import type { Reasoning } from "../format.ts";

export interface StartOptions {
  readonly prefix?: string;
  readonly thinking?: boolean;
}

export interface Start {
  /** "unknown": a close before any opener makes all before it a thought. */
  readonly place: "inside" | "outside" | "unknown";
  /** The prompt's end is not known, so that the model may write the opener itself. */
  readonly assumed: boolean;
}

/**
 * Where a text starts. The prompt's end decides where it is known; else whether the model was asked to think, if its template then opens
 * the thought; else the format's custom.
 */
export function startOf(reasoning: Reasoning | undefined, { prefix, thinking }: StartOptions): Start {
  if (!reasoning) return { place: "outside", assumed: false };
  if (prefix !== undefined) {
    return { place: openThought(reasoning, prefix) === null ? "outside" : "inside", assumed: false };
  }
  if (thinking === false) return { place: "outside", assumed: true };
  if (thinking === true && reasoning.askedMeansInside === true) return { place: "inside", assumed: true };
  return { place: reasoning.assume, assumed: true };
}

/** What the prompt's end has of a thought that it opened and did not close; null: it opened none. */
export function openThought(reasoning: Reasoning, prefix: string): string | null {
  let at = -1;
  for (const open of reasoning.open) {
    const found = prefix.lastIndexOf(open);
    if (found >= 0) at = Math.max(at, found + open.length);
  }
  if (at < 0) return null;
  const rest = prefix.slice(at);
  return reasoning.close.some((close) => rest.includes(close)) ? null : rest;
}
