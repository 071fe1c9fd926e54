import type { GenerationEvent } from "./events.ts";

const unseen: ReadonlySet<GenerationEvent["type"]> = new Set(["start", "part-start", "usage", "extra", "end"]);

/**
 * Whether a client sees something of the event. Until one comes of which it does, nothing of the answer is lost: an engine may try
 * again, and a server may still answer with the status of a failure.
 */
export function shows(event: GenerationEvent): boolean {
  return !unseen.has(event.type);
}
