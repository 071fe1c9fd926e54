import type { GenerationEvent } from "./events.ts";

const invisible: ReadonlySet<GenerationEvent["type"]> = new Set(["start", "part-start", "usage", "extra", "end"]);

/**
 * Whether a client sees the event. Before the first visible event an engine may retry, and the server may answer with the status of a
 * failure.
 */
export function isVisible(event: GenerationEvent): boolean {
  return !invisible.has(event.type);
}
