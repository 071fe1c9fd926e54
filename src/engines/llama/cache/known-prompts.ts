import type { CacheMiss, DifferingTexts } from "../../../wire/core/cache-miss.ts";
import { missCause, sharedSentences } from "./miss-cause.ts";
import { isSystem } from "../../../wire/core/prompt-parts.ts";
import { charactersOf, type PromptOutline } from "./prompt-outline.ts";

/** A prompt that is about to get a slot. */
export interface NewPrompt {
  /** A prompt is compared with prompts of the same owner only. */
  readonly owner: string | undefined;
  readonly tokens: readonly number[];
  readonly outline?: PromptOutline;
  readonly reasoningMarkers: readonly string[];
}

/** An earlier prompt: with its answer where `tokens` are those of a slot. */
interface Remembered {
  readonly owner: string | undefined;
  readonly outline: PromptOutline | undefined;
  readonly tokens: readonly number[];
}

interface EarlierPrompt extends Remembered {
  /** Number of the slot that holds it; undefined if it was evicted. */
  readonly slot?: number;
  /** Length of the prefix that the new prompt has in common with it, in tokens. */
  readonly common: number;
}

/** What is known of a miss before the slot is changed. */
export type MissDraft = Omit<CacheMiss, "cachedTokens" | "at"> & {
  /** Absent: the first token that is not in the cache. */
  readonly at?: number;
  /** The maximum number of tokens that could have been in the cache. */
  readonly maxTokens: number;
};

/** Evicted prompts that are remembered, and their memory together: about 8 MB. */
const maxEvicted = 64;
const maxEvictedSize = 8 * 2 ** 20;
/** To evaluate fewer tokens again takes no time. */
const minMissed = 16;
/** Characters in a report, on each side of the place. */
const shownCharacters = 80;
/** Characters in which the beginning of the line is searched for. */
const lineCharacters = 240;

/**
 * Remembers the prompts that slots were given, and finds out why a new prompt is not in the cache. The token ids show whether it is; the
 * outlines are compared only if it is not.
 */
export class KnownPrompts {
  readonly #bytesOf: (token: number) => Uint8Array;
  readonly #ofSlots = new Map<number, Remembered>();
  /** The oldest first. */
  #evicted: (Remembered & { readonly size: number })[] = [];

  constructor(bytesOf: (token: number) => Uint8Array) {
    this.#bytesOf = bytesOf;
  }

  /**
   * Notes that `slot` gets a prompt, and returns why the prompt is not in the cache; null if it is, except for what is new in it. To be
   * called before the slot changes. `slots`: the tokens in the cache of each slot, then those of other cached states.
   */
  beforeSlotChange(slot: number, asked: NewPrompt, slots: readonly (readonly number[])[]): MissDraft | null {
    const inSlots = slots.map((tokens) => commonLength(tokens, asked.tokens));
    const held = slots.flatMap((tokens, at): EarlierPrompt[] => {
      const given = this.#ofSlots.get(at);
      // After a failure, a slot may hold anything, even another owner's prompt.
      if (!given || commonLength(given.tokens, tokens) < Math.min(given.tokens.length, tokens.length)) return [];
      return [{ ...given, tokens, slot: at, common: inSlots[at] ?? 0 }];
    });
    const evicted = this.#evicted.map((prompt) => ({ ...prompt, common: commonLength(prompt.tokens, asked.tokens) }));
    const own = [...held.filter(({ tokens }) => tokens.length > 0), ...evicted].filter(
      ({ owner }) => owner === asked.owner,
    );
    const draft = this.#explain(asked, own, Math.max(0, ...inSlots));

    const remains = ({ common, tokens }: EarlierPrompt): boolean => common + minMissed <= tokens.length;
    this.#evicted = evicted.filter(remains);
    const replaced = held.find((prompt) => prompt.slot === slot);
    if (replaced && remains(replaced)) {
      const { owner, outline, tokens } = replaced;
      this.#evicted.push({ owner, outline, tokens: tokens.slice(), size: sizeOf(replaced) });
    }
    let size = 0;
    const dropped = this.#evicted.findLastIndex((prompt, at) => {
      size += prompt.size;
      return size > maxEvictedSize || this.#evicted.length - at > maxEvicted;
    });
    this.#evicted.splice(0, dropped + 1);
    this.#ofSlots.set(slot, { owner: asked.owner, outline: asked.outline, tokens: asked.tokens });
    return draft;
  }

  #explain(asked: NewPrompt, own: readonly EarlierPrompt[], inSlots: number): MissDraft | null {
    const promptTokens = asked.tokens.length;
    if (inSlots + minMissed > promptTokens) return null;
    const wasEvicted = (prompt: EarlierPrompt): boolean =>
      prompt.slot === undefined && prompt.common >= inSlots + minMissed;
    const isContinued = ({ slot, common, tokens }: EarlierPrompt): boolean =>
      slot !== undefined && common === tokens.length && 2 * common >= promptTokens;
    if (own.some(isContinued) && !own.some(wasEvicted)) return null;

    const likenessOf = likenessTo(asked);
    const alike = own
      .map((prompt) => ({ prompt, likeness: likenessOf(prompt) }))
      .filter(({ likeness }) => likeness > 0)
      .toSorted((one, other) => other.likeness - one.likeness || other.prompt.common - one.prompt.common);
    const [nearest] = alike;
    if (!nearest) return { cause: "nothing-known", promptTokens, maxTokens: promptTokens };
    const gone = alike.find(({ prompt, likeness }) => likeness === nearest.likeness && wasEvicted(prompt));
    if (gone) {
      const { common } = gone.prompt;
      return { cause: "evicted", promptTokens, knownTokens: common, maxTokens: common };
    }
    const { tokens: known, common: at, outline } = nearest.prompt;
    const maxTokens = Math.min(known.length, promptTokens);
    if (!outline || !asked.outline || maxTokens - at < minMissed) return null;
    const texts = divergingTexts(this.#bytesOf, known, asked.tokens, at, {
      before: lineCharacters,
      after: shownCharacters,
    });
    const byte = this.#byteAt(asked.tokens, at, asked.outline);
    const cause = missCause(outline, asked.outline, { byte, texts, reasoningMarkers: asked.reasoningMarkers });
    if (!cause) return null;
    const before = lastCharacters(texts.before, shownCharacters);
    return { ...cause, at, promptTokens, maxTokens, texts: { ...texts, before } };
  }

  /** Offset of a token in the rendered text, in bytes. A BOS may precede that text. */
  #byteAt(tokens: readonly number[], at: number, { bytes }: PromptOutline): number {
    let fromToken = 0;
    for (const token of tokens.slice(at)) fromToken += this.#bytesOf(token).length;
    return Math.max(0, bytes - fromToken);
  }
}

/**
 * Returns a function for how many characters of a prompt an earlier one contains, wherever they are: what could have been in the cache.
 * For prompts without outlines it is the length of their common prefix.
 */
function likenessTo({ outline: asked }: NewPrompt): (prompt: EarlierPrompt) => number {
  if (!asked) return ({ common }) => common;
  const texts = new Set(asked.messages.map(({ text }) => text));
  const definitions = new Set(asked.tools.map(({ definition }) => definition));
  return ({ outline: known, common }) => {
    if (!known) return common;
    let shared = 0;
    // Each text counts once: a message that is often repeated ("Go on.") does not make conversations alike.
    for (const text of new Set(known.messages.map(({ text }) => text))) if (texts.has(text)) shared += text.length;
    for (const { definition } of known.tools) if (definitions.has(definition)) shared += definition.length;
    const first = known.messages.findIndex(({ text }, at) => text !== asked.messages[at]?.text);
    const [former, now] = [known.messages[first], asked.messages[first]];
    if (former && now && isSystem(former) === isSystem(now)) shared += sharedSentences(former.text, now.text);
    return shared;
  };
}

/** Bytes that a remembered prompt takes, roughly. */
function sizeOf({ tokens, outline }: Remembered): number {
  return tokens.length * 4 + (outline ? charactersOf(outline) + outline.messages.length * 800 : 0);
}

function commonLength(known: readonly number[], asked: readonly number[]): number {
  let length = 0;
  while (length < known.length && length < asked.length && known[length] === asked[length]) length++;
  return length;
}

/** Completes a draft once it is known how much of the prompt was in the cache; null if that is enough. */
export function missOf({ maxTokens, ...draft }: MissDraft, cachedTokens: number): CacheMiss | null {
  if (maxTokens - cachedTokens < minMissed) return null;
  // Another client's prompt has the same beginning.
  if (draft.cause === "nothing-known" && cachedTokens * 2 > draft.promptTokens) return null;
  return { ...draft, at: draft.at ?? cachedTokens, cachedTokens };
}

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
  const [, ofNew] = textsOf(asked);
  return { before: lastCharacters(prefix, before), known: first(ofKnown, after), asked: first(ofNew, after) };
}

/** At most `count` UTF-16 units from the end, without half a surrogate pair. */
function lastCharacters(text: string, count: number): string {
  return text.slice(Math.max(0, text.length - count)).replace(/^[\udc00-\udfff]/, "");
}

function first(text: string, count: number): string {
  return text.slice(0, count).replace(/[\ud800-\udbff]$/, "");
}
