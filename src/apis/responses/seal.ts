import { readBase64Json } from "../base64-json.ts";
import type { BodyCounter } from "../body-counter.ts";

/** A value as a text that clients keep and give back as it is. `mark` tells what it is, and that it is ours. */
export function seal(mark: string, value: unknown): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(value))) bytes += String.fromCharCode(byte);
  return mark + btoa(bytes);
}

/** The value of a seal; undefined where it has another mark, or is broken. `counter`: of the request that it stands in. */
export function openSeal(mark: string, sealed: string, counter: BodyCounter): unknown {
  return sealed.startsWith(mark) ? readBase64Json(sealed.slice(mark.length), counter) : undefined;
}
