import { isSystem, promptRole, type PromptOutline } from "../cache/prompt-outline.ts";

/** So many tokens before its end, a text that goes on is read in the same tokens as before, as llama.cpp's own server has it. */
const beforeEnd = 4;
/** Less is read again at once. */
const worthMarking = 16;

/**
 * Where checkpoints of a prompt are of use, as numbers of its tokens, ascending: where its first message begins that is not an
 * instruction, since other conversations have the same instructions; where its last message begins, since that may be asked in another
 * way; and where the answer opens, or just before the end, since the next turn may tell the answer in other words.
 */
export function checkpointPlaces(
  prompt: readonly number[],
  outline: PromptOutline | undefined,
  bytesOf: (token: number) => number,
): number[] {
  const places = [outline && outline.openingBytes > 0 ? undefined : prompt.length - beforeEnd];
  if (outline) {
    const { messages, bytes, openingBytes } = outline;
    const first = messages.find((message) => !isSystem(message) && message.role !== promptRole);
    const last = messages.findLast(({ role }) => role === "user");
    const wanted = [first?.start, last?.start, openingBytes > 0 ? bytes - openingBytes : undefined];
    places.push(...tokensBefore(wanted, prompt, bytes, bytesOf));
  }
  const useful = places.filter((place) => place !== undefined && place >= worthMarking && place < prompt.length);
  return [...new Set(useful as number[])].toSorted((one, other) => one - other);
}

/** How many tokens end at these bytes of the rendered text or before. A BOS may stand before that text. */
function tokensBefore(
  wanted: readonly (number | undefined)[],
  prompt: readonly number[],
  bytes: number,
  bytesOf: (token: number) => number,
): (number | undefined)[] {
  const ends = new Float64Array(prompt.length);
  let end = 0;
  for (const [at, token] of prompt.entries()) ends[at] = end += bytesOf(token);
  const before = end - bytes;
  return wanted.map((byte) => {
    if (byte === undefined) return undefined;
    const next = ends.findIndex((tokenEnd) => tokenEnd > byte + before);
    return next === -1 ? undefined : next;
  });
}
