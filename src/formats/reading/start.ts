import type { Reasoning } from "../format.ts";

export interface StartOptions {
  readonly prefix?: string;
  readonly thinking?: boolean;
}

/**
 * Where a text starts: inside a thought or not, and whether that is certain. The prompt's end decides where it is known; else whether
 * the model was asked to think, if its template then opens the thought; else the format's custom.
 */
export function startOf(reasoning: Reasoning | undefined, options: StartOptions): [inside: boolean, assumed: boolean] {
  if (!reasoning) return [false, false];
  const { prefix, thinking } = options;
  if (prefix !== undefined) return [openThought(reasoning, prefix) !== null, false];
  if (thinking === false) return [false, true];
  if (thinking === true && reasoning.askedMeansInside === true) return [true, true];
  return [reasoning.assume === "inside", true];
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
