import type { Format, Reasoning } from "./format.ts";

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

/**
 * What closes a model's reasoning: the first text for the first time, the second for every further time; empty if the format has no
 * reasoning. In a routed format, the model may first choose the recipient of its next message; if that is reasoning again, the second text
 * starts the answer. `prefix`: the end of the prompt, which has begun the first header.
 */
export function reasoningClosings(format: Format, prefix: string): readonly string[] {
  if (format.kind === "plain") return format.reasoning ? [format.reasoning.close[0]] : [];
  const { start, headerEnd, ends, routes } = format;
  const header = routes.find(({ to }) => to === "content")?.write?.[0];
  const [end] = ends;
  if (header === undefined || end === undefined || !routes.some(({ to }) => to === "reasoning")) return [];
  const at = prefix.lastIndexOf(start);
  const role = at < 0 ? "" : (/^\w+/.exec(prefix.slice(at + start.length))?.[0] ?? "");
  const next = end + start + role;
  return [next, next + (header.startsWith(role) ? header.slice(role.length) : header) + headerEnd];
}

/** The markers of a model's reasoning, as far as they are fixed in the format. Empty if it has no reasoning. */
export function reasoningMarkers(format: Format): readonly string[] {
  const { open = [], close = [] } = format.reasoning ?? {};
  const headers = format.kind === "routed" ? format.routes.filter(({ to }) => to === "reasoning") : [];
  return [...open, ...close, ...headers.flatMap(({ write = [] }) => write)];
}
