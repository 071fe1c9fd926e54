import { readBase64Json } from "../base64-json.ts";
import { BodyCounter } from "../body-counter.ts";

/**
 * The signature of a thought that no server of Anthropic's has signed: opaque to clients, which send it back as it came. It carries what
 * the next turn needs and the thinking block has no place for.
 */
export interface SealedThought {
  /** The thought, where the client asked for blocks without text (`display: "omitted"`). */
  readonly text?: string;
  /** The thought in its maker's sealed form, where the maker speaks another API. */
  readonly encrypted?: string;
  /** The item's id there. */
  readonly id?: string;
}

/** `truewire:` in base 64; nine bytes, so that it stands alone. */
const mark = "dHJ1ZXdpcmU6";

export function sealThought(thought: SealedThought): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(thought))) binary += String.fromCharCode(byte);
  return mark + btoa(binary);
}

/**
 * What a signature of ours carries; undefined: it is not ours. One that was cut on the way carries nothing. `counter`: of the request that
 * it stands in.
 */
export function openThought(signature: string, counter: BodyCounter = new BodyCounter()): SealedThought | undefined {
  if (!signature.startsWith(mark)) return undefined;
  const value = readBase64Json(signature.slice(mark.length), counter);
  if (typeof value !== "object" || value === null) return {};
  const members = value as Readonly<Record<keyof SealedThought, unknown>>;
  const { text, encrypted, id } = members;
  return {
    ...(typeof text === "string" && { text }),
    ...(typeof encrypted === "string" && { encrypted }),
    ...(typeof id === "string" && { id }),
  };
}

/** The signature of a thought of which these are known; `text` only where the block does not show it. */
export function ownSignature(text: string, encrypted: string | undefined, id: string | undefined): string {
  return sealThought({
    ...(text !== "" && { text }),
    ...(encrypted !== undefined && { encrypted }),
    // An id tells nothing without what it is of.
    ...(encrypted !== undefined && id !== undefined && { id }),
  });
}
