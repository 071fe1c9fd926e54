import type { TokenAlternative, TokenLogprob } from "../../core/events.ts";
import type { JsonValue } from "../json-text.ts";
import { logprobNumber } from "../logprobs.ts";
import type { PrintNumber } from "../logprobs.ts";

/**
 * Returns log probabilities in the legacy form: four lists of the same length. `top_logprobs` always includes the chosen token.
 * `textOffset`: the offset of the first token's text, in characters.
 */
export function completionLogprobs(
  tokens: readonly TokenLogprob[],
  textOffset: number,
  print: PrintNumber,
): { readonly value: JsonValue; readonly nextOffset: number } {
  const offsets: number[] = [];
  let offset = textOffset;
  for (const { token } of tokens) {
    offsets.push(offset);
    offset += characterCount(token);
  }
  const value = {
    tokens: tokens.map((token) => tokenText(token)),
    token_logprobs: tokens.map(({ logprob }) => logprobNumber(logprob, print)),
    // The first token of a prompt has no log probability and no alternatives.
    top_logprobs: tokens.map((token) => (token.logprob === null ? null : topLogprobs(token, print))),
    text_offset: offsets,
  };
  return { value, nextOffset: offset };
}

function topLogprobs(token: TokenLogprob, print: PrintNumber): JsonValue {
  // Without a prototype: "constructor" is a token like any other.
  const top: { [token: string]: JsonValue } = Object.create(null);
  // Different tokens may have the same text: the more probable one, which is first, is kept.
  for (const other of token.top) top[tokenText(other)] ??= logprobNumber(other.logprob, print);
  top[tokenText(token)] ??= logprobNumber(token.logprob, print);
  return top;
}

/** Returns the text of a token. A part of a character becomes `bytes:\xe2\x80`, as in OpenAI's legacy endpoint. */
function tokenText({ token, bytes }: TokenAlternative): string {
  if (bytes === null || !token.includes("\uFFFD")) return token;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }
}

function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
