import { isObject } from "../../core/json.ts";
import { readBase64Json } from "../base64-json.ts";
import { BodyCounter } from "../body-counter.ts";

/**
 * The content of a signature that this server writes for reasoning that no server of Anthropic has signed. Clients send signatures back
 * unread, so it carries what the next turn needs and the thinking block has no member for.
 */
export interface SignedReasoning {
  /** The text of the reasoning, where the client asked for blocks without text (`display: "omitted"`). */
  readonly text?: string;
  /** The encrypted reasoning of a source that speaks another API. */
  readonly encrypted?: string;
  /** The id of the source's reasoning item. */
  readonly id?: string;
  /** The conversation that the block belongs to. */
  readonly bound?: BlockBinding;
}

/** Digests of what precedes a thinking block: the system prompt, the tools and the messages. */
export interface BlockBinding {
  readonly system: string;
  readonly tools: string;
  readonly prefix: string;
}

/** `truewire:` in base 64. It is nine bytes long, so its encoding does not depend on what follows. */
const prefix = "dHJ1ZXdpcmU6";

export function encodeSignature(content: SignedReasoning): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(content))) binary += String.fromCharCode(byte);
  return prefix + btoa(binary);
}

/**
 * Returns the content of a signature that this server wrote, `{}` if the signature is damaged, and `undefined` for any other signature.
 * `counter` limits the JSON of the whole request.
 */
export function decodeSignature(
  signature: string,
  counter: BodyCounter = new BodyCounter(),
): SignedReasoning | undefined {
  if (!signature.startsWith(prefix)) return undefined;
  const value = readBase64Json(signature.slice(prefix.length), counter);
  if (typeof value !== "object" || value === null) return {};
  const { text, encrypted, id, bound } = value as Readonly<Record<keyof SignedReasoning, unknown>>;
  const { system, tools, prefix: messages } = isObject(bound) ? bound : {};
  return {
    ...(typeof text === "string" && { text }),
    ...(typeof encrypted === "string" && { encrypted }),
    ...(typeof id === "string" && { id }),
    ...(typeof system === "string" &&
      typeof tools === "string" &&
      typeof messages === "string" && { bound: { system, tools, prefix: messages } }),
  };
}

/** Returns a signature for reasoning without one. `text` is "" where the block shows it. */
export function newSignature(
  text: string,
  encrypted: string | undefined,
  id: string | undefined,
  bound?: BlockBinding,
): string {
  return encodeSignature({
    ...(text !== "" && { text }),
    ...(encrypted !== undefined && { encrypted }),
    // The id is of use only with the encrypted reasoning.
    ...(encrypted !== undefined && id !== undefined && { id }),
    ...(bound && { bound }),
  });
}
