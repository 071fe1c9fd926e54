import type { Format } from "./format.ts";

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
