import { isSystem, promptRole } from "../../../../wire/core/prompt-outline.ts";
import type { RenderedOutline } from "../../cache/rendered-outline.ts";
import {
  commonLength,
  lostTokens,
  reusable,
  type CachedSequence,
  type Sequence,
  type SequenceState,
  type SequenceTokens,
} from "./sequence.ts";

/** Decoding fewer tokens takes as long as copying their state. */
export const minCopyTokens = 64;
/** Limits the time of a search. */
const maxStates = 64;

/**
 * The prompt cache in main memory: the checkpoints of all slots, and copies of sequences that were replaced by another conversation, or by
 * another branch of their own. In a unified KV cache, copies with a common prefix share its blocks, and a slot keeps the blocks that it was
 * restored from, so that its next copy adds only what is new. When the cache is full, it drops these first; then copies of which another one, or a slot, has nine
 * tenths of the tokens; then the other ones, then checkpoints; each time the oldest first.
 */
export class PromptCache {
  readonly #limit: number;
  readonly #sequences: readonly Sequence[];
  /** The oldest first. */
  #states: SequenceState[] = [];

  /** `limit`: in bytes; 0 turns the cache off. */
  constructor(limit: number, sequences: readonly Sequence[]) {
    this.#limit = limit;
    this.#sequences = sequences;
  }

  get enabled(): boolean {
    return this.#limit > 0;
  }

  /** The oldest first. */
  get states(): readonly SequenceState[] {
    return this.#states;
  }

  /** The size of all checkpoints and copies in bytes. Those with a common prefix share checkpoints and blocks, which count once. */
  get bytes(): number {
    const parts = new Set<Uint8Array>();
    for (const { checkpoints } of [...this.#sequences, ...this.#states])
      for (const { state } of checkpoints) parts.add(state);
    for (const { savedBlocks } of this.#sequences) for (const { state } of savedBlocks) parts.add(state);
    for (const { blocks } of this.#states) for (const { state } of blocks) parts.add(state);
    let bytes = 0;
    for (const { byteLength } of parts) bytes += byteLength;
    return bytes;
  }

  /** Makes a checkpoint at the end of a sequence. */
  checkpoint(sequence: Sequence): void {
    if (this.enabled && this.#free(() => sequence.checkpointSize(), sequence)) sequence.checkpoint();
  }

  /** Copies a sequence that is about to be replaced, unless another slot or a copy has the same tokens. */
  save(sequence: Sequence): void {
    if (sequence.length < minCopyTokens || !this.canSave(sequence) || this.#isElsewhere(sequence)) return;
    const state = this.#free(() => sequence.unsavedSize(), sequence) ? sequence.copy() : null;
    if (state) this.add(state);
  }

  /** The same if nothing has to be dropped for it. Returns whether the tokens are in the cache, or elsewhere. */
  saveIfFits(sequence: Sequence): boolean {
    if (sequence.length < minCopyTokens || this.#isElsewhere(sequence)) return true;
    const isFull = (): boolean => this.bytes + sequence.unsavedSize() > this.#limit;
    if (isFull()) this.#dropSavedBlocks(sequence);
    const fits = !isFull() && this.#states.length < maxStates;
    const state = fits ? sequence.copy() : null;
    if (state) this.add(state);
    return state !== null;
  }

  /** Whether a copy of the sequence is not larger than the cache. */
  canSave(sequence: Sequence): boolean {
    if (!this.enabled) return false;
    // Its checkpoints are counted already, and stay.
    const own = sequence.checkpoints.reduce((sum, { state }) => sum + state.byteLength, 0);
    return sequence.copySize() + own <= this.#limit;
  }

  /** Adds a copy for which there is space. */
  add(state: SequenceState): void {
    const isSuperseded = (older: CachedSequence): boolean => reusable(state, older) === older.tokens.length;
    this.#states = [...this.#states.filter((older) => !isSuperseded(older)), state].slice(-maxStates);
  }

  /** Adds a copy if nothing has to be dropped for it. Returns whether it was added. */
  addIfFits(state: SequenceState): boolean {
    const bytes = [...state.checkpoints, ...state.blocks].reduce((sum, { state }) => sum + state.byteLength, 0);
    if (this.bytes + bytes > this.#limit || this.#states.length >= maxStates) return false;
    this.add(state);
    return true;
  }

  /** The copy with the longest reusable prefix of a text, of which at most `max` tokens are used. */
  find(
    requested: SequenceTokens,
    max: number,
  ): { readonly state: SequenceState; readonly reusable: number } | undefined {
    let best: { readonly state: SequenceState; readonly reusable: number } | undefined;
    for (const state of this.#states) {
      const count = reusable(state, requested, max);
      if (count >= minCopyTokens && count > (best?.reusable ?? 0)) best = { state, reusable: count };
    }
    return best;
  }

  /**
   * A copy is about to be restored to a slot that uses `count` of its tokens. If that is all of its prompt, the cache drops it, so that the
   * slot's own tokens find space; else it is kept for its own branch, as the newest.
   */
  take(state: SequenceState, count: number): void {
    const others = this.#states.filter((other) => other !== state);
    this.#states = lostTokens(state, count) < minCopyTokens ? others : [...others, state];
  }

  #isElsewhere(sequence: Sequence): boolean {
    const { tokens } = sequence;
    const hasAll = (other: CachedSequence): boolean =>
      other !== sequence &&
      commonLength(other.tokens, tokens) === tokens.length &&
      reusable(other, sequence) === tokens.length;
    return this.#sequences.some(hasAll) || this.#states.some(hasAll);
  }

  #isMostlyElsewhere(state: SequenceState): boolean {
    const hasMost = (other: CachedSequence): boolean =>
      other !== state && 10 * reusable(other, state) >= 9 * state.tokens.length;
    return this.#sequences.some(hasMost) || this.#states.some(hasMost);
  }

  /** Drops the blocks that are only those of slots, except `sequence`, whose next copy needs them. */
  #dropSavedBlocks(sequence: Sequence): void {
    for (const other of this.#sequences) if (other !== sequence) other.dropSavedBlocks();
  }

  /** Drops blocks, copies, then checkpoints, those of `sequence` last, until `bytes()` are free. Returns false if that is not possible. */
  #free(bytes: () => number, sequence: Sequence): boolean {
    if (this.bytes + bytes() <= this.#limit) return true;
    if (bytes() > this.#limit) return false;
    this.#dropSavedBlocks(sequence);
    const others = this.#sequences.filter((other) => other !== sequence);
    for (;;) {
      if (this.bytes + bytes() <= this.#limit) return true;
      const [oldest] = this.#states;
      if (oldest) {
        const dropped = this.#states.find((state) => this.#isMostlyElsewhere(state)) ?? oldest;
        this.#states = this.#states.filter((state) => state !== dropped);
        continue;
      }
      const holder = [...others, sequence].find(({ checkpoints }) => checkpoints.length > 0);
      if (!holder) return false;
      holder.dropCheckpoint();
    }
  }
}

/** A text that continues is tokenized differently in its last tokens. llama.cpp's server uses the same number. */
const tokensBeforeEnd = 4;
/** A shorter prefix is decoded again without delay. */
const minCheckpointTokens = 16;

/**
 * Positions in a prompt at which checkpoints are useful, ascending: at the first message that is not an instruction, since other
 * conversations have the same instructions; at the last user message, which may be sent again in another form; and where the answer
 * starts, or just before the end, since the next request may contain the answer in another form.
 */
export function checkpointPositions(
  prompt: readonly number[],
  outline: RenderedOutline | undefined,
  bytesOf: (token: number) => number,
): number[] {
  const positions = [outline && outline.openingBytes > 0 ? undefined : prompt.length - tokensBeforeEnd];
  if (outline) {
    const { messages, starts, bytes, openingBytes } = outline;
    const first = messages.findIndex((message) => !isSystem(message) && message.role !== promptRole);
    const last = messages.findLastIndex(({ role }) => role === "user");
    const offsets = [starts[first], starts[last], openingBytes > 0 ? bytes - openingBytes : undefined];
    positions.push(...tokensBefore(offsets, prompt, bytes, bytesOf));
  }
  const useful = positions.filter(
    (position) => position !== undefined && position >= minCheckpointTokens && position < prompt.length,
  );
  return [...new Set(useful as number[])].toSorted((one, other) => one - other);
}

/** The number of tokens that end at or before each byte offset of the rendered text, which may follow a BOS. */
function tokensBefore(
  offsets: readonly (number | undefined)[],
  prompt: readonly number[],
  bytes: number,
  bytesOf: (token: number) => number,
): (number | undefined)[] {
  const ends = new Float64Array(prompt.length);
  let end = 0;
  for (const [at, token] of prompt.entries()) ends[at] = end += bytesOf(token);
  const start = end - bytes;
  return offsets.map((offset) => {
    if (offset === undefined) return undefined;
    const next = ends.findIndex((tokenEnd) => tokenEnd > offset + start);
    return next === -1 ? undefined : next;
  });
}
