import { expect, test } from "vitest";
import type { RenderedOutline } from "../../cache/rendered-outline.ts";
import { checkpointPositions, PromptCache } from "./prompt-cache.ts";
import type { Sequence, SequenceState } from "./sequence.ts";

const bytesOf = (token: number): number => token;

type Placed = readonly [role: string, start: number];

function outline(bytes: number, openingBytes: number, placed: readonly Placed[]): RenderedOutline {
  const messages = placed.map(([role]) => ({ role, path: "", tokens: 3, digest: "0-1", text: "0-1", parts: [] }));
  const starts = placed.map(([, start]) => start);
  return { bytes, openingBytes, messages, starts, tools: [], toolsStart: 0, options: "" };
}

/** Tokens of two bytes each. */
const tokens = Array.from({ length: 100 }, () => 2);

test("checkpoints are at the end of the instructions, at the last user message, and at the start of the answer", () => {
  const messages: Placed[] = [
    ["system", 0],
    ["user", 60],
    ["assistant", 100],
    ["user", 150],
  ];
  const positions = checkpointPositions(tokens, outline(200, 10, messages), bytesOf);
  expect(positions).toEqual([30, 75, 95]);
});

test("a position within a token is before it, and a BOS may precede the text", () => {
  const messages: Placed[] = [
    ["system", 0],
    ["user", 61],
  ];
  const bos = [7, ...tokens];
  expect(checkpointPositions(bos, outline(200, 9, messages), bytesOf)).toEqual([31, 96]);
});

test("a prompt that is not a conversation has a checkpoint just before its end", () => {
  expect(checkpointPositions(tokens, undefined, bytesOf)).toEqual([96]);
  expect(checkpointPositions(tokens, outline(200, 0, [["prompt", 0]]), bytesOf)).toEqual([96]);
});

test("a prompt of a few tokens has none, and no checkpoint is after the last token", () => {
  expect(checkpointPositions(tokens.slice(0, 12), undefined, bytesOf)).toEqual([]);
  const messages: Placed[] = [
    ["system", 0],
    ["user", 4],
  ];
  expect(checkpointPositions(tokens, outline(200, 200, messages), bytesOf)).toEqual([]);
});

/** A sequence of a prompt; a copy of it takes a byte for each token. */
function sequenceOf(tokens: readonly number[]): Sequence {
  const cached = { tokens, adapters: "", truncatableFrom: 0, promptLength: tokens.length, checkpoints: [] };
  const copy = (): SequenceState => ({
    ...cached,
    images: [],
    blocks: [{ length: tokens.length, state: new Uint8Array(tokens.length) }],
  });
  const size = (): number => tokens.length;
  return { ...cached, length: tokens.length, copySize: size, unsavedSize: size, copy } as unknown as Sequence;
}

const conversation = (first: number, length = 100): number[] => Array.from({ length }, (_, at) => first + at);
const firstTokens = ({ states }: PromptCache): unknown => states.map(({ tokens }) => tokens[0]);

// Each retry saves a branch: the branches of one conversation replaced all other conversations.
test("a full cache drops copies that another one has nearly all tokens of, then the oldest ones", () => {
  const cache = new PromptCache(400, []);
  const branch = [...conversation(2000, 95), ...conversation(5000, 5)];
  for (const tokens of [conversation(1000), conversation(2000), branch]) cache.save(sequenceOf(tokens));
  expect(firstTokens(cache)).toEqual([1000, 2000, 2000]);
  cache.save(sequenceOf(conversation(3000, 150)));
  expect(firstTokens(cache)).toEqual([1000, 2000, 3000]);
  expect(cache.states[1]?.tokens).toEqual(branch);
  cache.save(sequenceOf(conversation(4000)));
  expect(firstTokens(cache)).toEqual([2000, 3000, 4000]);
});

test("tokens are set aside only if nothing has to be dropped for them", () => {
  const cache = new PromptCache(150, []);
  expect(cache.saveIfFits(sequenceOf(conversation(1000)))).toBe(true);
  expect(cache.saveIfFits(sequenceOf(conversation(1000)))).toBe(true);
  expect(cache.saveIfFits(sequenceOf(conversation(2000)))).toBe(false);
  expect(firstTokens(cache)).toEqual([1000]);
});

// Another agent with the same system prompt took the copy, and its own agent found nothing.
test("a copy of which a part is used stays; one that is used with all of its prompt is dropped", () => {
  const cache = new PromptCache(400, []);
  cache.save(sequenceOf(conversation(1000)));
  const [state] = cache.states;
  if (!state) throw new Error("Nothing was saved.");
  cache.take(state, 30);
  expect(cache.states).toEqual([state]);
  cache.take(state, 99);
  expect(cache.states).toEqual([]);
});
