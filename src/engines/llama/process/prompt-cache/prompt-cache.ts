import {
  commonLength,
  reusable,
  type SequenceTokens,
  type CachedSequence,
  type Sequence,
  type SequenceState,
} from "./sequence.ts";
import { isSystem, promptRole, type PromptOutline } from "../../cache/prompt-outline.ts";

/** Fewer tokens are read again as fast as their state is copied. */
export const minCopyTokens = 64;
/** Looking through them takes time. */
const mostStates = 64;

/**
 * What is kept beside the model's own memory, in main memory and within a limit: the checkpoints of all slots, and copies of what slots
 * knew before they were given to another conversation. The oldest copies go first.
 */
export class PromptCache {
  readonly #limit: number;
  readonly #sequences: readonly Sequence[];
  /** The oldest first. */
  #states: SequenceState[] = [];

  /** `limit`: in bytes; 0: nothing is kept. */
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

  /** What all of it takes. Sequences and copies that begin alike have checkpoints in common. */
  get bytes(): number {
    const parts = new Set<Uint8Array>();
    for (const { checkpoints } of [...this.#sequences, ...this.#states])
      for (const { state } of checkpoints) parts.add(state);
    for (const { state } of this.#states) parts.add(state);
    let bytes = 0;
    for (const { byteLength } of parts) bytes += byteLength;
    return bytes;
  }

  /** Makes a checkpoint of a sequence where it stands. */
  checkpoint(sequence: Sequence): void {
    if (this.enabled && this.#makeRoom(sequence.checkpointSize(), sequence)) sequence.checkpoint();
  }

  /** Keeps what a sequence knows, before it is given to another conversation. */
  save(sequence: Sequence): void {
    if (!this.enabled || sequence.length < minCopyTokens || this.#isElsewhere(sequence)) return;
    const own = sequence.checkpoints.reduce((sum, { state }) => sum + state.byteLength, 0);
    const bytes = sequence.copySize();
    // The checkpoints are counted already, and stay.
    if (bytes + own > this.#limit || !this.#makeRoom(bytes, sequence)) return;
    const state = sequence.copy();
    if (state) this.add(state);
  }

  /** Keeps a copy that there is room for. */
  add(state: SequenceState): void {
    const isSuperseded = (older: CachedSequence): boolean => reusable(state, older) === older.tokens.length;
    this.#states = [...this.#states.filter((older) => !isSuperseded(older)), state].slice(-mostStates);
  }

  /** As `add`, where it fits beside the others. false: it does not. */
  addIfFits(state: SequenceState): boolean {
    const bytes = state.checkpoints.reduce((sum, { state }) => sum + state.byteLength, state.state.byteLength);
    if (this.bytes + bytes > this.#limit || this.#states.length >= mostStates) return false;
    this.add(state);
    return true;
  }

  /** The copy that knows most of a text, of which `most` tokens may be known. */
  find(asked: SequenceTokens, most: number): { readonly state: SequenceState; readonly known: number } | undefined {
    let best: { readonly state: SequenceState; readonly known: number } | undefined;
    for (const state of this.#states) {
      const known = reusable(state, asked, most);
      if (known >= minCopyTokens && known > (best?.known ?? 0)) best = { state, known };
    }
    return best;
  }

  /** A copy has moved into a slot, where so many of its tokens are used: if that is little of it, it is kept for its own conversation. */
  restored(state: SequenceState, known: number): void {
    const rest = this.#states.filter((other) => other !== state);
    this.#states = 2 * known >= state.tokens.length ? rest : [...rest, state];
  }

  /** Another slot or a copy knows as much. */
  #isElsewhere(sequence: Sequence): boolean {
    const { tokens } = sequence;
    const knows = (other: CachedSequence): boolean =>
      other !== sequence &&
      commonLength(other.tokens, tokens) === tokens.length &&
      reusable(other, sequence) === tokens.length;
    return this.#sequences.some(knows) || this.#states.some(knows);
  }

  /** Drops copies, then checkpoints, those of `sequence` last, until there is room for so many bytes. false: there is not so much. */
  #makeRoom(bytes: number, sequence: Sequence): boolean {
    if (bytes <= 0 || bytes > this.#limit) return false;
    const others = this.#sequences.filter((other) => other !== sequence);
    for (;;) {
      if (this.bytes + bytes <= this.#limit) return true;
      if (this.#states.length > 0) {
        this.#states = this.#states.slice(1);
        continue;
      }
      const holder = [...others, sequence].find(({ checkpoints }) => checkpoints.length > 0);
      if (!holder) return false;
      holder.dropCheckpoint();
    }
  }
}

/** So many tokens before its end, a text that goes on is read in the same tokens as before, as llama.cpp's own server has it. */
const beforeEnd = 4;
/** Less is read again at once. */
const worthMarking = 16;

/**
 * Where checkpoints of a prompt are of use, as numbers of its tokens, ascending: where its first message begins that is not an
 * instruction, since other conversations have the same instructions; where its last message begins, since that may be asked in another
 * way; and where the answer opens, or just before the end, since the next turn may tell the answer in other words.
 */
export function checkpointPositions(
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
