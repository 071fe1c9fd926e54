import { jsonChunks } from "./json-chunks.ts";
import type { Steps } from "./steps.ts";

/** The number of characters that are digested in one step. */
const chunkSize = 64 * 1024;

/** A digest of 64 bits, which is not cryptographic: a client can only deceive itself. Source: cyrb53 by bryc, public domain. */
export class Digest {
  /** In characters. */
  length = 0;
  #high = 0xdeadbeef;
  #low = 0x41c6ce57;

  add(text: string): this {
    let [high, low] = [this.#high, this.#low];
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      high = Math.imul(high ^ unit, 2654435761);
      low = Math.imul(low ^ unit, 1597334677);
    }
    [this.#high, this.#low] = [high, low];
    this.length += text.length;
    return this;
  }

  get value(): string {
    const [high, low] = [this.#high, this.#low];
    const mixed = (one: number, other: number) =>
      Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909);
    return [mixed(high, low), mixed(low, high)].map((half) => (half >>> 0).toString(36)).join("-");
  }
}

/** The digest of a text. */
export function digestText(text: string): string {
  return new Digest().add(text).value;
}

/** Digests the JSON of a value, in steps. */
export function* digestJson(value: unknown): Steps<Digest> {
  const digest = new Digest();
  for (const chunk of jsonChunks(value, chunkSize)) {
    if (digest.length > 0) yield;
    digest.add(chunk);
  }
  return digest;
}
