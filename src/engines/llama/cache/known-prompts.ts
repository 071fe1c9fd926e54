import type { CacheMiss } from "../../../core/cache-miss.ts";
import { likenessTo } from "./likeness.ts";
import { missCause } from "./miss-cause.ts";
import { last, partingTexts, toldCharacters } from "./parting-texts.ts";
import type { PromptOutline } from "./prompt-outline.ts";

/** A prompt that is about to get a slot. */
export interface AskedPrompt {
  /** Whose it is. Nothing is told of the prompts of others. */
  readonly owner: string | undefined;
  readonly tokens: readonly number[];
  /** Absent: it is not a conversation's. */
  readonly outline?: PromptOutline;
  readonly thoughtMarkers: readonly string[];
}

interface Remembered {
  readonly owner: string | undefined;
  readonly outline: PromptOutline | undefined;
  readonly prompt: readonly number[];
}

interface PastPrompt extends Omit<Remembered, "prompt"> {
  /** The prompt's and those of its answer. */
  readonly tokens: readonly number[];
}

/** How many tokens a new prompt has in common, from the beginning, with what each slot and each past prompt has. */
interface CommonLengths {
  readonly slots: readonly number[];
  readonly past: readonly number[];
}

/** What is known of a miss before the slot is changed. */
export type MissDraft = Omit<CacheMiss, "cachedTokens" | "at"> & {
  /** Absent: where the cache ends. */
  readonly at?: number;
  /** So many might have been read from the cache. */
  readonly mostTokens: number;
};

/** Prompts whose slots others have got: so many, with so many tokens in all (8 MiB), are remembered. */
const mostPast = 64;
const mostPastTokens = 2 ** 20;
/** Of the conversations among them: so many messages in all, each of which is looked at for each new prompt. */
const mostPastMessages = 10_000;
/** To read fewer tokens again takes no time. */
const worthTelling = 16;
/** What changes by itself is found by its line. */
const lineCharacters = 240;

/**
 * Remembers which prompts the slots were given, and finds out why a new one is not in the cache. A prompt is compared with those of its
 * own owner alone: of what others asked, nothing can be learnt here.
 */
export class KnownPrompts {
  readonly #bytesOf: (token: number) => Uint8Array;
  readonly #ofSlots = new Map<number, Remembered>();
  readonly #past: PastPrompt[] = [];

  constructor(bytesOf: (token: number) => Uint8Array) {
    this.#bytesOf = bytesOf;
  }

  /**
   * Why a prompt that now gets `slot` is not known: to be called before the slot changes. `slots`: the tokens that each one knows.
   * null: it is, but for what is new in it.
   */
  takes(slot: number, asked: AskedPrompt, slots: readonly (readonly number[])[]): MissDraft | null {
    // Once for all that is asked of them: long prompts that begin alike take a while to compare.
    const common: CommonLengths = {
      slots: slots.map((known) => commonLength(known, asked.tokens)),
      past: this.#past.map((past) => commonLength(past.tokens, asked.tokens)),
    };
    const found = this.#explain(asked, slots, common);
    this.#forget(slot, slots[slot] ?? [], common);
    this.#ofSlots.set(slot, { owner: asked.owner, outline: asked.outline, prompt: asked.tokens });
    return found;
  }

  #explain(asked: AskedPrompt, slots: readonly (readonly number[])[], common: CommonLengths): MissDraft | null {
    const { tokens } = asked;
    const inSlots = Math.max(0, ...common.slots);
    if (inSlots + worthTelling > tokens.length) return null;
    const own = this.#own(asked, slots, common);
    const promptTokens = tokens.length;
    const nearest = nearestOf(own);
    const gone = own
      .filter(({ isGone, alike }) => isGone && alike === nearest?.alike)
      .reduce((most, { common }) => Math.max(most, common), 0);
    if (gone >= inSlots + worthTelling) return { cause: "evicted", promptTokens, knownTokens: gone, mostTokens: gone };
    if (!nearest) return { cause: "nothing-known", promptTokens, mostTokens: promptTokens };
    const { known, common: at, outline } = nearest;
    const mostTokens = Math.min(known.length, promptTokens);
    if (!outline || !asked.outline || mostTokens - at < worthTelling) return null;
    const texts = partingTexts(this.#bytesOf, known, tokens, at, { before: lineCharacters, after: toldCharacters });
    const byte = this.#byteAt(tokens, at, asked.outline);
    const cause = missCause(outline, asked.outline, { byte, texts, thoughtMarkers: asked.thoughtMarkers });
    if (!cause) return null;
    const told = { ...texts, before: last(texts.before, toldCharacters) };
    return { ...cause, at, promptTokens, mostTokens, texts: told };
  }

  /** The owner's earlier conversations that have something in common with this one, with the tokens that are known of them. */
  #own({ owner, outline }: AskedPrompt, slots: readonly (readonly number[])[], lengths: CommonLengths): Candidate[] {
    const candidates: Candidate[] = [];
    const likeness = outline && likenessTo(outline);
    const add = (
      former: Pick<Remembered, "outline">,
      known: readonly number[],
      common: number,
      isGone: boolean,
    ): void => {
      const alike = likeness && former.outline ? likeness(former.outline) : common;
      if (alike > 0) candidates.push({ known, common, isGone, alike, outline: former.outline });
    };
    for (const [slot, known] of slots.entries()) {
      const former = this.#given(slot, known);
      if (former && former.owner === owner && known.length > 0) add(former, known, lengths.slots[slot] ?? 0, false);
    }
    for (const [at, past] of this.#past.entries())
      if (past.owner === owner) add(past, past.tokens, lengths.past[at] ?? 0, true);
    return candidates;
  }

  /** The prompt that a slot was given, if that is what it holds: where a request has failed, it may hold anything, others' texts too. */
  #given(slot: number, known: readonly number[]): Remembered | undefined {
    const given = this.#ofSlots.get(slot);
    if (!given) return undefined;
    const holds = commonLength(given.prompt, known) === Math.min(given.prompt.length, known.length);
    return holds ? given : undefined;
  }

  /** What a slot knows becomes a thing of the past, unless the new prompt goes on with it. */
  #forget(slot: number, known: readonly number[], common: CommonLengths): void {
    const given = this.#given(slot, known);
    const goesOn = (former: readonly number[], length = 0): boolean => length + worthTelling > former.length;
    const kept = this.#past.filter((past, at) => !goesOn(past.tokens, common.past[at]));
    if (given && !goesOn(known, common.slots[slot]))
      kept.push({ owner: given.owner, outline: given.outline, tokens: known.slice() });
    let [tokens, messages] = [0, 0];
    const first = kept.findLastIndex((past, at) => {
      tokens += past.tokens.length;
      messages += past.outline?.messages.length ?? 0;
      return tokens > mostPastTokens || messages > mostPastMessages || kept.length - at > mostPast;
    });
    this.#past.splice(0, this.#past.length, ...kept.slice(first + 1));
  }

  /** Where a token begins in the rendered text, in bytes. A BOS stands before that. */
  #byteAt(tokens: readonly number[], at: number, { bytes }: PromptOutline): number {
    let before = 0;
    let all = 0;
    for (let i = 0; i < tokens.length; i++) {
      const { length } = this.#bytesOf(tokens[i] ?? 0);
      if (i < at) before += length;
      all += length;
    }
    return Math.max(0, before - (all - bytes));
  }
}

interface Candidate {
  readonly known: readonly number[];
  /** Tokens in common from the beginning. */
  readonly common: number;
  readonly isGone: boolean;
  readonly alike: number;
  readonly outline: PromptOutline | undefined;
}

function nearestOf(candidates: readonly Candidate[]): Candidate | undefined {
  let nearest: Candidate | undefined;
  for (const one of candidates) {
    const nearer = !nearest || one.alike > nearest.alike;
    if (nearer || (one.alike === nearest?.alike && one.common > nearest.common)) nearest = one;
  }
  return nearest;
}

function commonLength(known: readonly number[], asked: readonly number[]): number {
  let length = 0;
  while (length < known.length && length < asked.length && known[length] === asked[length]) length++;
  return length;
}

/** What is told of a miss once it is known how much was in the cache; null: enough. */
export function missOf({ mostTokens, ...draft }: MissDraft, cachedTokens: number): CacheMiss | null {
  if (mostTokens - cachedTokens < worthTelling) return null;
  // Another client's prompt began the same.
  if (draft.cause === "nothing-known" && cachedTokens * 2 > draft.promptTokens) return null;
  return { ...draft, at: draft.at ?? cachedTokens, cachedTokens };
}
