import { randomBase62 } from "./ids.ts";

/**
 * Adds `obfuscation`, the last member of a chunk, which hides the length of a token from an observer of the encrypted stream.
 *
 * The rule (17,107 of 17,112 chunks recorded since 2025-08): `[0-9A-Za-z]`, so many that the length of the whole JSON is
 * 1 modulo 16. The length counts characters; those outside the basic plane count as one (no recording has any).
 *
 * `json`: a compact object without its closing brace. Returns the whole object.
 */
export function obfuscate(json: string, random: () => number): string {
  // `json` lacks one brace: the length that counts is one more.
  const padding = (16 - ((characters(json) + 1) % 16)) % 16;
  return `${json},"obfuscation":"${randomBase62(padding, random)}"}`;
}

function characters(text: string): number {
  const pairs = text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g);
  return text.length - (pairs?.length ?? 0);
}
