import { BodyCounter } from "../body-counter.ts";
import { openSeal, seal } from "./seal.ts";

/** What is kept of a thought, so that a model can be given it again. */
export interface SealedThought {
  readonly text: string;
  readonly summary?: readonly string[];
  readonly signature?: string;
  readonly encrypted?: string;
}

/** Marks a seal as ours, and tells its version. */
const mark = "truewire.1.";

/**
 * A thought as `encrypted_content`: clients that keep nothing at the server give it back as it is. It is encoded, not encrypted: whoever
 * has it may read the thought, which the client was allowed to see anyway.
 */
export function sealThought(thought: SealedThought): string {
  return seal(mark, thought);
}

/** The thought of a seal; null where the seal is another's, or broken. `counter`: of the request that it stands in. */
export function openThought(sealed: string, counter: BodyCounter = new BodyCounter()): SealedThought | null {
  const thought = openSeal(mark, sealed, counter);
  return isThought(thought) ? thought : null;
}

function isThought(value: unknown): value is SealedThought {
  if (typeof value !== "object" || value === null || !("text" in value) || typeof value.text !== "string") return false;
  const { summary, signature, encrypted } = value as { [name: string]: unknown };
  return (
    (summary === undefined || (Array.isArray(summary) && summary.every((part) => typeof part === "string"))) &&
    (signature === undefined || typeof signature === "string") &&
    (encrypted === undefined || typeof encrypted === "string")
  );
}
