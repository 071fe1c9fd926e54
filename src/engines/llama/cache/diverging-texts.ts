import type { DifferingTexts } from "../../../core/cache-miss.ts";

/** A character has at most four bytes, and one more may be cut in two. */
const bytesFor = (characters: number): number => characters * 4 + 4;

/**
 * The texts on both sides of the token at which two prompts diverge: at most `before` characters before it and `after` of each prompt
 * after it. A character whose bytes are spread over several tokens is whole: it belongs to the side after the token.
 */
export function divergingTexts(
  bytesOf: (token: number) => Uint8Array,
  known: readonly number[],
  asked: readonly number[],
  at: number,
  { before, after }: { readonly before: number; readonly after: number },
): DifferingTexts {
  const common: Uint8Array[] = [];
  for (let i = at - 1, size = 0; i >= 0 && size < bytesFor(before); i--) {
    const bytes = bytesOf(asked[i] ?? 0);
    size += bytes.length;
    common.unshift(bytes);
  }
  const shared = Buffer.concat(common);
  let start = 0;
  // Continuation bytes of a character that begins earlier.
  while (start < 3 && ((shared[start] ?? 0) & 0xc0) === 0x80) start++;
  const textsOf = (tokens: readonly number[]): [common: string, rest: string] => {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const prefix = decoder.decode(shared.subarray(start), { stream: true });
    const chunks: Uint8Array[] = [];
    for (let i = at, size = 0; i < tokens.length && size < bytesFor(after); i++) {
      const bytes = bytesOf(tokens[i] ?? 0);
      size += bytes.length;
      chunks.push(bytes);
    }
    return [prefix, decoder.decode(Buffer.concat(chunks), { stream: true })];
  };
  const [prefix, ofKnown] = textsOf(known);
  const [, ofAsked] = textsOf(asked);
  return { before: lastCharacters(prefix, before), known: first(ofKnown, after), asked: first(ofAsked, after) };
}

/** At most `count` UTF-16 units from the end, without half a surrogate pair. */
export function lastCharacters(text: string, count: number): string {
  return text.slice(Math.max(0, text.length - count)).replace(/^[\udc00-\udfff]/, "");
}

function first(text: string, count: number): string {
  return text.slice(0, count).replace(/[\ud800-\udbff]$/, "");
}
