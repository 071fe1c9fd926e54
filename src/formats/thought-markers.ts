import type { Format } from "./format.ts";

/** The markers of a model's reasoning, as far as they are fixed in the format. Empty if it has no reasoning. */
export function reasoningMarkers(format: Format): readonly string[] {
  const { open = [], close = [] } = format.reasoning ?? {};
  const headers = format.kind === "routed" ? format.routes.filter(({ to }) => to === "reasoning") : [];
  return [...open, ...close, ...headers.flatMap(({ write = [] }) => write)];
}
