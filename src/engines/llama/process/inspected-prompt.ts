import type { InspectedPrompt } from "../../../generation/inspection.ts";
import type { PromptInput } from "../preparing/prepared-request.ts";
import { TokenText } from "./token-text.ts";

/** A prompt as the model reads it: the text of its tokens, with the places of control tokens and of the client's own words. */
export function inspectedPrompt(
  vocabulary: { bytes(token: number): Uint8Array; isControl(token: number): boolean },
  tokens: readonly number[],
  input: PromptInput | undefined,
): InspectedPrompt {
  const decoder = new TokenText();
  const pieces = tokens.map((token) => decoder.push(vocabulary.bytes(token)));
  const text = pieces.join("") + decoder.end();
  const control = tokens.flatMap((token, at) => (vocabulary.isControl(token) ? [at] : []));
  const lengths = pieces.map(({ length }) => length);
  if (input?.type !== "spans" || !input.quotes) return { text, lengths, control, quotes: [] };
  const rendered = input.spans.map((span) => span.text).join("");
  // A tokenizer may put something in front (a BOS, a space), but where it changes more, places are not what they were.
  if (!text.endsWith(rendered)) return { text, lengths, control, quotes: [] };
  const before = text.length - rendered.length;
  const quotes = input.quotes.map(({ start, end, role }) => ({ start: start + before, end: end + before, role }));
  return { text, lengths, control, quotes };
}
