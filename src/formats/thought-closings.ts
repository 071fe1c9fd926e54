import type { Format } from "./format.ts";

/**
 * What closes a model's thought: the first time, and every further time. Where messages have headers, the model is first free to choose
 * where its next message goes; if that is a thought again, the next one is the answer. Empty: the format has no thoughts. `prefix`: the
 * end of the prompt, which has begun the first header.
 */
export function thoughtClosings(format: Format, prefix: string): readonly string[] {
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
