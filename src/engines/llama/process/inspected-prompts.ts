import type { InspectedPrompt } from "../../../core/inspection.ts";
import type { PromptInput } from "../preparing/prepared-request.ts";
import { TokenText } from "./token-text.ts";

/** What is told of a request's prompts travels in one message: it has so many tokens at most. */
const most = 2 ** 18;
/** So many are read in one step. */
const atOnce = 4096;

interface Spelling {
  bytes(token: number): Uint8Array;
  isControl(token: number): boolean;
}

/**
 * A request's prompts as the model reads them: the text of their tokens, with the places of control tokens and of the client's own words.
 * Of a prompt that is too long to be told, the beginning without any places; of many, the first ones. A work in steps.
 */
export function* inspectedPrompts(
  vocabulary: Spelling,
  prompts: readonly (readonly number[])[],
  inputs: readonly PromptInput[],
): Generator<undefined, InspectedPrompt[], undefined> {
  const told: InspectedPrompt[] = [];
  let room = most;
  for (const [at, tokens] of prompts.entries()) {
    if (room <= 0) break;
    told.push(yield* inspectedPrompt(vocabulary, tokens, inputs[at], room));
    room -= tokens.length;
  }
  return told;
}

function* inspectedPrompt(
  vocabulary: Spelling,
  tokens: readonly number[],
  input: PromptInput | undefined,
  room: number,
): Generator<undefined, InspectedPrompt, undefined> {
  const decoder = new TokenText();
  const pieces: string[] = [];
  const control: number[] = [];
  const count = Math.min(tokens.length, room);
  for (let at = 0; at < count; at++) {
    const token = tokens[at] ?? 0;
    pieces.push(decoder.push(vocabulary.bytes(token)));
    if (vocabulary.isControl(token)) control.push(at);
    if (at % atOnce === atOnce - 1) yield;
  }
  const text = pieces.join("") + decoder.end();
  if (count < tokens.length) return { text, lengths: [], control: [], quotes: [] };
  const lengths = pieces.map(({ length }) => length);
  if (input?.type !== "spans" || !input.quotes) return { text, lengths, control, quotes: [] };
  const rendered = input.spans.map((span) => span.text).join("");
  // A tokenizer may put something in front (a BOS, a space), but where it changes more, places are not what they were.
  if (!text.endsWith(rendered)) return { text, lengths, control, quotes: [] };
  const before = text.length - rendered.length;
  const quotes = input.quotes.map(({ start, end, role }) => ({ start: start + before, end: end + before, role }));
  return { text, lengths, control, quotes };
}
