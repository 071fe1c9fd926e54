import type { Format } from "./format.ts";

/** What a model's thoughts begin and end with, as far as a format has it in fixed words; none where it has no thoughts. */
export function thoughtMarkers(format: Format): readonly string[] {
  const { open = [], close = [] } = format.reasoning ?? {};
  const headers = format.kind === "routed" ? format.routes.filter(({ to }) => to === "reasoning") : [];
  return [...open, ...close, ...headers.flatMap(({ write = [] }) => write)];
}
