/** What a batch consists of, as far as the duration of its decode depends on it. */
export interface BatchShape {
  /** Tasks in the batch that sample at least one token. */
  readonly answers: number;
  /** `answers`, plus those that have their turn in the next batches: they are decoded one after another, or wait for a chunk of a prompt. */
  readonly round: number;
  readonly promptTokens: number;
  readonly draftTokens: number;
}

/** Numbers of draft tokens per batch, where answers may have different ones. Few sizes, so that each is soon measured. */
export const draftSizes = [1, 2, 3, 5, 7, 11, 15, 23, 31] as const;
export const maxDraftTokens = 31;
/** Assumed cost of a draft token, as a share of a decode without drafts, if nothing is known. Low, so that drafts are tried. */
const assumedDraftShare = 0.05;
/** The share of its interpolated cost that a size is assumed to have, so that it is tried: kernels have steps at some sizes. */
const assumedBetweenShare = 0.95;

/** Measured sizes of batches with prompt tokens. The last one includes all larger batches. */
export const chunkSizes = [16, 32, 64] as const;
const maxChunkSize = 64;
/** What is measured of prompt tokens: batches of a size, and those of the largest one with answers, or while answers wait for it. */
type ChunkKind = (typeof chunkSizes)[number] | "together" | "apart";
/** A measurement expires after this number of chunks: attention over a longer context takes longer. */
const maxChunkAge = 128;
const maxTurnAge = 16;
/** Milliseconds per prompt token before the first measurement: such a decode runs in another thread, because it may take long. */
const assumedTokenMs = 1;

/** After this number of decodes a draft size is assumed to cost `staleShare` of what was measured, so that it is tried again. */
const maxDraftAge = 2000;
const staleShare = 0.75;

/** `fastestMs` is the minimum of the last decodes: other load on the machine only makes them slower. */
const recentDecodes = 8;
const minRecentDecodes = 4;

/** Measurements of decodes with the same number of answers and draft tokens. */
interface Measured {
  /** Smoothed duration in milliseconds at a pace of 1. */
  ms: number;
  /** The first decode alone is no measurement: it may include one-time initialization in llama.cpp. */
  count: number;
  /** Number of the last decode. */
  last: number;
  /** Durations of the last decodes without drafts, in milliseconds. */
  recent: number[];
  /** `#answersDecoded` at the last decode without drafts. */
  lastAnswers: number;
}

/**
 * The table of measured costs: how long `llama_decode` takes for a batch. Prefill chunk sizes, speculative drafts and the choice between
 * one batch for all answers and one batch for each (`plan.ts`, `draft-plan.ts`) are decided from it.
 *
 * All durations are wall-clock milliseconds of the decode call alone, without sampling and without other threads of the process.
 */
export class DecodeCosts {
  readonly #decodes = new Map<number, Measured>();
  /** The same durations by the number of all tokens in the batch, on which they depend most. */
  readonly #totals = new Map<number, Pick<Measured, "ms" | "count" | "last">>();
  readonly #chunks = new Map<ChunkKind, { readonly tokenMs: number; readonly at: number }>();
  /** Current speed of the machine relative to the measurements: contexts grow, and other load comes and goes. */
  #pace = 1;
  #decodeCount = 0;
  #answersDecoded = 0;
  #chunkCount = 0;
  #stepMs = 0;
  #draftStreak = 0;

  /** Records the duration of a decode, in milliseconds. */
  observe({ answers, round, promptTokens, draftTokens }: BatchShape, duration: number): void {
    const ms = Math.max(0.001, duration);
    if (promptTokens > 0) return this.#observeChunk(promptTokens, answers, round, ms);
    const measured = this.#observeDecode(answers, draftTokens, ms);
    this.#observeTotal(answers + draftTokens, ms);
    this.#draftStreak = draftTokens > 0 ? this.#draftStreak + 1 : 0;
    if (draftTokens > 0) return;
    this.#stepMs += ((ms * round) / answers - this.#stepMs) * 0.2;
    this.#answersDecoded += answers;
    measured.lastAnswers = this.#answersDecoded;
    measured.recent.push(ms);
    if (measured.recent.length > recentDecodes) measured.recent.shift();
  }

  /** Moving average of how long one token for each running answer takes, in milliseconds; 0 before the first measurement. */
  get stepMs(): number {
    return this.#stepMs;
  }

  /** Number of decodes with drafts since the last one without. */
  get draftStreak(): number {
    return this.#draftStreak;
  }

  /** Expected duration of a decode, in milliseconds; 0 if nothing is known of answers. */
  expectedMs({ answers, promptTokens, draftTokens }: BatchShape): number {
    if (promptTokens > 0)
      return this.#stepMs + promptTokens * (this.promptTokenMs(promptTokens + answers) ?? assumedTokenMs);
    return (draftTokens > 0 ? this.decodeMs(answers, draftTokens) : this.fastestMs(answers)) ?? this.#stepMs;
  }

  /** Smoothed duration of a decode without prompt tokens, in milliseconds; `undefined` until two were measured. */
  decodeMs(answers: number, draftTokens: number): number | undefined {
    const measured = this.#decodes.get(keyOf(answers, draftTokens));
    return measured && measured.count > 1 ? measured.ms * this.#pace : undefined;
  }

  /**
   * The same for any number of draft tokens, interpolated between measured sizes. More than the largest of them cost as much as tokens of
   * prompts: where decodes are limited by computation, trying a size costs several tokens. `plainMs`: duration without drafts.
   */
  draftMs(answers: number, draftTokens: number, plainMs: number): number {
    const [fewer, fewerMs] = this.#nearestSize(answers, draftTokens, -1) ?? [0, plainMs];
    if (fewer === draftTokens) return fewerMs;
    const more = this.#nearestSize(answers, draftTokens, 1);
    if (!more) {
      const tokenMs = Math.min(plainMs, this.promptTokenMs(answers + draftTokens) ?? assumedDraftShare * plainMs);
      return fewerMs + (draftTokens - fewer) * tokenMs;
    }
    const [moreTokens, moreMs] = more;
    if (moreTokens === draftTokens) return moreMs;
    const ms = fewerMs + ((moreMs - fewerMs) * (draftTokens - fewer)) / (moreTokens - fewer);
    return Math.max(fewerMs, ms * assumedBetweenShare);
  }

  /** Fastest of the last decodes of this number of answers without drafts, in milliseconds; `undefined` until four were measured. */
  fastestMs(answers: number): number | undefined {
    const recent = this.#decodes.get(keyOf(answers, 0))?.recent ?? [];
    return recent.length >= minRecentDecodes ? Math.min(...recent) : undefined;
  }

  /** Duration of one token for each of the answers, together or one after another, whichever is faster; `undefined` if unknown. */
  roundMs(answers: number): number | undefined {
    const together = this.fastestMs(answers);
    const single = this.fastestMs(1);
    return single === undefined ? together : Math.min(single * answers, together ?? Infinity);
  }

  /** Tokens of answers that were decoded without drafts since a batch of this number of answers was measured. */
  tokensSince(answers: number): number {
    return this.#answersDecoded - (this.#decodes.get(keyOf(answers, 0))?.lastAnswers ?? 0);
  }

  /** Milliseconds per prompt token in batches of the nearest measured size; `undefined` if none was measured. */
  promptTokenMs(batchTokens: number): number | undefined {
    const smaller = chunkSizes.findLast((size) => size <= batchTokens && this.#chunks.has(size));
    const size = smaller ?? chunkSizes.find((larger) => this.#chunks.has(larger));
    return size === undefined ? undefined : this.#chunks.get(size)?.tokenMs;
  }

  /** Milliseconds per prompt token, without those of the answers in the batch; `undefined` if it was not measured lately. */
  chunkTokenMs(kind: ChunkKind): number | undefined {
    const chunk = this.#chunks.get(kind);
    const maxAge = typeof kind === "number" ? maxChunkAge : maxTurnAge;
    return chunk && this.#chunkCount - chunk.at <= maxAge ? chunk.tokenMs : undefined;
  }

  #observeDecode(answers: number, draftTokens: number, ms: number): Measured {
    this.#decodeCount++;
    const key = keyOf(answers, draftTokens);
    let measured = this.#decodes.get(key);
    if (!measured) {
      measured = { ms: ms / this.#pace, count: 0, last: 0, recent: [], lastAnswers: 0 };
      this.#decodes.set(key, measured);
    } else if (measured.count === 1) {
      measured.ms = Math.min(measured.ms, ms / this.#pace);
    } else {
      // Limited, because one decode that was interrupted by other load says little about the machine.
      const pace = Math.min(2 * this.#pace, Math.max(this.#pace / 2, ms / measured.ms));
      this.#pace += (pace - this.#pace) * 0.2;
      measured.ms += (Math.min(2 * measured.ms, ms / this.#pace) - measured.ms) * 0.2;
    }
    measured.count++;
    measured.last = this.#decodeCount;
    return measured;
  }

  #observeTotal(tokens: number, duration: number): void {
    const ms = duration / this.#pace;
    const total = this.#totals.get(tokens) ?? { ms, count: 0, last: 0 };
    this.#totals.set(tokens, total);
    // The first decode alone is no measurement here, either.
    total.ms = total.count === 1 ? Math.min(total.ms, ms) : total.ms + (Math.min(2 * total.ms, ms) - total.ms) * 0.2;
    total.count++;
    total.last = this.#decodeCount;
  }

  /** The smoothed duration of a decode with draft tokens, and its number; that of any answers if these were not measured. */
  #measuredDraft(answers: number, draftTokens: number): { readonly ms: number; readonly last: number } | undefined {
    const own = this.#decodes.get(keyOf(answers, draftTokens));
    const measured = own && own.count > 1 ? own : this.#totals.get(answers + draftTokens);
    return measured && measured.count > 1 ? { ms: measured.ms * this.#pace, last: measured.last } : undefined;
  }

  #observeChunk(promptTokens: number, answers: number, round: number, ms: number): void {
    this.#chunkCount++;
    // The kernels depend on the size of the whole batch. The answers in it would have taken `roundMs` without the prompts.
    const size = chunkSizes.findLast((known) => known <= promptTokens + answers);
    if (size === undefined) return;
    const roundMs = answers === 0 ? 0 : this.roundMs(answers);
    const tokenMs = Math.max(ms / 4, ms - (roundMs ?? 0)) / promptTokens;
    const kinds: ChunkKind[] = [size];
    if (size === maxChunkSize && round > 0 && roundMs !== undefined) kinds.push(answers > 0 ? "together" : "apart");
    for (const kind of kinds) {
      const known = this.chunkTokenMs(kind);
      // Limited, because one decode that was interrupted by other load says little.
      const smoothed = known === undefined ? tokenMs : known + (Math.min(2 * known, tokenMs) - known) * 0.3;
      this.#chunks.set(kind, { tokenMs: smoothed, at: this.#chunkCount });
    }
  }

  /** The nearest measured draft size in a direction, starting with `draftTokens` itself. */
  #nearestSize(
    answers: number,
    draftTokens: number,
    direction: 1 | -1,
  ): readonly [tokens: number, ms: number] | undefined {
    for (let size = draftTokens; size >= 1 && size <= maxDraftTokens; size += direction) {
      const measured = this.#measuredDraft(answers, size);
      if (!measured) continue;
      const age = this.#decodeCount - measured.last;
      return [size, age > maxDraftAge ? measured.ms * staleShare : measured.ms];
    }
    return undefined;
  }
}

function keyOf(answers: number, draftTokens: number): number {
  return answers * (maxDraftTokens + 1) + draftTokens;
}
