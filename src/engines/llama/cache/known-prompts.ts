import type { CacheMiss, DifferingTexts } from "../../../wire/core/cache-miss.ts";
import { likenessTo } from "../../../wire/core/compare-outlines.ts";
import { missCause } from "./miss-cause.ts";
import type { RenderedOutline } from "./rendered-outline.ts";

/** A prompt that is about to get a slot. */
export interface NewPrompt {
  /** A prompt is compared with prompts of the same owner only. */
  readonly owner: string | undefined;
  readonly tokens: readonly number[];
  readonly outline: RenderedOutline | undefined;
  readonly reasoningMarkers: readonly string[];
}

/** An earlier prompt: with its answer where `tokens` are those of a slot. */
interface Remembered {
  readonly owner: string | undefined;
  readonly outline: RenderedOutline | undefined;
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

    const likenessOf = asked.outline && likenessTo(asked.outline);
    const alike = own
      .map((prompt) => ({
        prompt,
        // The tokens that both have, wherever they are: what could have been in the cache.
        likeness: likenessOf && prompt.outline ? likenessOf(prompt.outline) : prompt.common,
      }))
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
    const texts = divergingTexts(this.#bytesOf, known, asked.tokens, at);
    const byte = this.#byteAt(asked.tokens, at, asked.outline);
    const cause = missCause(outline, asked.outline, { byte, texts, reasoningMarkers: asked.reasoningMarkers });
    return cause && { ...cause, at, promptTokens, maxTokens, texts: shown(texts, shownCharacters) };
  }

  /** Offset of a token in the rendered text, in bytes. A BOS may precede that text. */
  #byteAt(tokens: readonly number[], at: number, { bytes }: RenderedOutline): number {
    let fromToken = 0;
    for (const token of tokens.slice(at)) fromToken += this.#bytesOf(token).length;
    return Math.max(0, bytes - fromToken);
  }
}

/** Bytes that a remembered prompt takes, roughly. */
function sizeOf({ tokens, outline }: Remembered): number {
  return tokens.length * 4 + (outline ? (outline.messages.length + outline.tools.length) * 800 : 0);
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

/**
 * The texts on both sides of the first character in which two prompts diverge. `at` is the first token that differs, which may be within a
 * character. `before` is long enough to contain the beginning of the line.
 */
export function divergingTexts(
  bytesOf: (token: number) => Uint8Array,
  known: readonly number[],
  asked: readonly number[],
  at: number,
): DifferingTexts {
  const textOf = (tokens: readonly number[]): string => {
    // A character has at most four bytes, and a token that is not empty has one.
    const bytes = tokens.slice(Math.max(0, at - 4 * lineCharacters), at + 4 * shownCharacters + 4).map(bytesOf);
    // Bytes of a character that began earlier, or is not complete.
    return new TextDecoder("utf-8", { ignoreBOM: true })
      .decode(Buffer.concat(bytes))
      .replace(/^\ufffd{1,3}|\ufffd$/g, "");
  };
  const [one, other] = [textOf(known), textOf(asked)];
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  // Both halves of a surrogate pair belong to one side.
  if (/[\ud800-\udbff]/.test(one[same - 1] ?? "")) same--;
  return shown({ before: one.slice(0, same), known: one.slice(same), asked: other.slice(same) }, lineCharacters);
}

/** At most `before` characters before the place and `shownCharacters` after it, without half a surrogate pair. */
function shown(texts: DifferingTexts, before: number): DifferingTexts {
  const start = (text: string): string => text.slice(0, shownCharacters).replace(/[\ud800-\udbff]$/, "");
  return {
    before: texts.before.slice(-before).replace(/^[\udc00-\udfff]/, ""),
    known: start(texts.known),
    asked: start(texts.asked),
  };
}
