import type { AdapterScales } from "../c-api/adapters.ts";
import { outsideImage, positionAt, type ImageSpan } from "../../vision/prompt-images.ts";
import type { NativeContext } from "../c-api/native-context.ts";

/** Decoded tokens: in a slot, or in a copy of one. */
export interface CachedSequence {
  readonly tokens: readonly number[];
  /** The adapters with which they were decoded. */
  readonly adapters: AdapterScales;
  /**
   * The shortest length to which it can be truncated without a checkpoint; 0 if to any. A recurrent model has one state for all tokens,
   * and layers with a sliding window have dropped what is further back.
   */
  readonly truncatableFrom: number;
  /**
   * Tokens of the last prompt. Those after it are of its answer, which the next request of the conversation may contain in another form, or
   * not at all.
   */
  readonly promptLength: number;
  /** Ascending. */
  readonly checkpoints: readonly Checkpoint[];
}

/** A copy of the part of a model's memory that cannot be truncated, as it was after the first `length` tokens. */
export interface Checkpoint {
  readonly length: number;
  readonly state: Uint8Array;
}

/** A part of the copy of a sequence: the state of the tokens from the end of the previous block to `length`. */
export interface StateBlock {
  readonly length: number;
  readonly state: Uint8Array;
}

/** A copy of a whole sequence. */
export interface SequenceState extends CachedSequence {
  /** The images in it, in order. */
  readonly images: readonly ImageSpan[];
  /** Ascending. Copies with a common prefix share its blocks. */
  readonly blocks: readonly StateBlock[];
}

/** A text to decode, and the adapters to use. */
export type SequenceTokens = Pick<CachedSequence, "tokens" | "adapters">;

/** The length of the common prefix. */
export function commonLength(one: readonly number[], other: readonly number[]): number {
  const max = Math.min(one.length, other.length);
  let length = 0;
  while (length < max && one[length] === other[length]) length++;
  return length;
}

/** The number of a text's tokens that need not be decoded again, at most `max`. */
export function reusable(
  cached: CachedSequence,
  requested: SequenceTokens,
  max: number = requested.tokens.length,
): number {
  if (cached.adapters !== requested.adapters) return 0;
  const common = Math.min(commonLength(cached.tokens, requested.tokens), max);
  if (common === cached.tokens.length || common >= cached.truncatableFrom) return common;
  return lastCheckpoint(cached.checkpoints, common)?.length ?? 0;
}

/** The number of prompt tokens that are lost if only the first `count` tokens are kept. */
export function lostTokens({ promptLength }: Pick<CachedSequence, "promptLength">, count: number): number {
  return Math.max(0, promptLength - count);
}

function lastCheckpoint(checkpoints: readonly Checkpoint[], maxLength: number): Checkpoint | undefined {
  return checkpoints.findLast(({ length }) => length <= maxLength);
}

/** Tokens of a block. Smaller ones share more of a common prefix, but llama.cpp searches all cells of the KV cache for each block. */
const blockTokens = 1024;

/** Checkpoints of a sequence at most: the first one, where other conversations may branch off, and the last ones. */
const maxCheckpoints = 8;

/**
 * A sequence of a context's KV cache: the tokens that it holds. Sequences with a common prefix share its cells.
 *
 * The memory of recurrent models, and of layers with a sliding window, cannot be truncated anywhere. A checkpoint is a copy of that part,
 * to which the sequence can be reset.
 */
export class Sequence implements CachedSequence {
  readonly id: number;
  readonly #context: NativeContext;
  readonly #tokens: number[] = [];
  #checkpoints: Checkpoint[] = [];
  #adapters: AdapterScales = "";
  #promptLength = 0;
  #images: readonly ImageSpan[] = [];
  /** Blocks of copies that have the same state as the sequence's first tokens: it was restored from them, or copied to them. */
  #savedBlocks: readonly StateBlock[] = [];
  /** Tokens at the end that can be removed from a recurrent model's state: once, and only those of the last decode but one. */
  #removable = 0;
  /** Tokens were removed from a recurrent model's state since the last decode. llama.cpp does not copy that (llama_memory_seq_cp). */
  #isSetBack = false;

  constructor(context: NativeContext, id: number) {
    this.#context = context;
    this.id = id;
  }

  get tokens(): readonly number[] {
    return this.#tokens;
  }

  /** Number of tokens. */
  get length(): number {
    return this.#tokens.length;
  }

  get checkpoints(): readonly Checkpoint[] {
    return this.#checkpoints;
  }

  get adapters(): AdapterScales {
    return this.#adapters;
  }

  get promptLength(): number {
    return Math.min(this.#promptLength, this.#tokens.length);
  }

  /** A task takes the sequence for a prompt of this length. */
  startPrompt(length: number): void {
    this.#promptLength = length;
  }

  get truncatableFrom(): number {
    const { isRecurrent, window } = this.#context.model;
    if (isRecurrent) return this.#tokens.length - this.#removable;
    if (window === 0) return 0;
    // The next token needs a complete window.
    const [first] = this.#context.positions(this.id);
    const { length } = this.#tokens;
    return first <= 0 ? 0 : first + window - 1 + (length - positionAt(length, this.#images));
  }

  /** The position of the next token, which is less than the length after images with M-RoPE. */
  get nextPosition(): number {
    return positionAt(this.#tokens.length, this.#images);
  }

  /** Selects the adapters for further tokens. Clears the sequence if its tokens were decoded with others. */
  setAdapters(adapters: AdapterScales): void {
    if (adapters === this.#adapters) return;
    this.clear();
    this.#adapters = adapters;
  }

  /** The length of the common prefix with a text. */
  commonLength(tokens: readonly number[]): number {
    return commonLength(this.#tokens, tokens);
  }

  /** The number of a text's tokens that need not be decoded again, at most `max`. */
  reusable(requested: SequenceTokens, max?: number): number {
    return reusable(this, requested, max);
  }

  /**
   * Truncates the sequence to `length` tokens, or to the start of the image there, or to the last checkpoint before that if the memory cannot
   * be truncated there. Returns the length that is left.
   */
  truncate(length: number): number {
    if (length >= this.#tokens.length) return this.#tokens.length;
    const whole = outsideImage(length, this.#images);
    if (whole <= 0) this.clear();
    else if (whole >= this.truncatableFrom && this.#context.truncate(this.id, positionAt(whole, this.#images))) {
      this.#shorten(whole);
      this.#isSetBack = this.#context.model.isRecurrent;
    } else this.#reset(whole);
    return this.#tokens.length;
  }

  /** Replaces the sequence by the first `length` tokens of another one; by fewer, or none, if there is no memory for that. */
  copyFrom(other: Sequence, length: number): void {
    // Between KV caches, llama.cpp copies cells only at the next decode, with what they hold by then (llama-kv-cache.cpp, `seq_cp`).
    if (other.#isSetBack || !this.#context.unifiedKv) {
      const state = other.copy();
      if (state) this.restore(state);
      else this.clear();
      return void this.truncate(length);
    }
    this.clear();
    this.#context.copy(other.id, this.id);
    this.append(other.#tokens);
    this.#images = other.#images;
    this.#savedBlocks = other.#savedBlocks;
    this.#removable = 0;
    this.#checkpoints = [...other.#checkpoints];
    this.#adapters = other.#adapters;
    this.truncate(length);
  }

  /** Records tokens that were decoded. */
  append(tokens: readonly number[]): void {
    for (const token of tokens) this.#tokens.push(token);
    this.#removable = Math.min(this.#context.maxRollback, tokens.length - 1);
    this.#isSetBack = false;
  }

  /** An image begins at the end: its rows are appended next. */
  appendImage(image: ImageSpan): void {
    this.#images = [...this.#images, image];
  }

  clear(): void {
    this.#tokens.length = 0;
    this.#images = [];
    this.#savedBlocks = [];
    this.#removable = 0;
    this.#isSetBack = false;
    this.#checkpoints = [];
    this.#context.clear(this.id);
  }

  /** Restores a consistent state after a decode that failed or was aborted. */
  rollback(): void {
    const [, last] = this.#context.positions(this.id);
    if (!this.#endsAt(last)) this.#reset(this.#tokens.length);
  }

  /** Whether the position of the last token may be this one. With M-RoPE, the rows of an image may have the same position. */
  #endsAt(position: number): boolean {
    const image = this.#images.at(-1);
    const isInImage = image && image.positions !== image.count && image.start + image.count >= this.#tokens.length;
    return isInImage ? position >= positionAt(image.start, this.#images) : position + 1 === this.nextPosition;
  }

  /** The size of a checkpoint at the end, in bytes. */
  checkpointSize(): number {
    return this.#context.stateSize(this.id, "partial");
  }

  /** Makes a checkpoint at the end. */
  checkpoint(): void {
    const { length } = this.#tokens;
    const state = this.#context.readState(this.id, "partial");
    if (!state) return;
    this.#checkpoints = [...this.#checkpoints.filter((other) => other.length !== length), { length, state }];
    if (this.#checkpoints.length > maxCheckpoints) this.dropCheckpoint();
  }

  /** Drops the least useful checkpoint: the second one, or the only one. */
  dropCheckpoint(): void {
    this.#checkpoints.splice(this.#checkpoints.length > 1 ? 1 : 0, 1);
  }

  /** The size of a copy, in bytes. */
  copySize(): number {
    return this.#context.stateSize(this.id, "all");
  }

  get savedBlocks(): readonly StateBlock[] {
    return this.#savedBlocks;
  }

  /** Frees the blocks that are not part of another copy. The next copy of the sequence takes longer. */
  dropSavedBlocks(): void {
    this.#savedBlocks = [];
  }

  /** The size of the blocks that a copy adds, in bytes. */
  unsavedSize(): number {
    return this.copySize() - this.#savedBlocks.reduce((sum, { state }) => sum + state.byteLength, 0);
  }

  /** Copies the sequence; `null` if llama.cpp cannot. */
  copy(): SequenceState | null {
    const blocks = this.#readBlocks();
    // Of layers with a sliding window, only the window of the next token is copied.
    const { isRecurrent, window } = this.#context.model;
    const { length } = this.#tokens;
    const truncatableFrom = isRecurrent ? length : window === 0 || length <= window ? 0 : length - 1;
    return (
      blocks && {
        tokens: [...this.#tokens],
        images: this.#images,
        adapters: this.#adapters,
        truncatableFrom,
        promptLength: this.promptLength,
        checkpoints: this.#checkpoints,
        blocks,
      }
    );
  }

  /** The saved blocks, and copies of what follows them. */
  #readBlocks(): readonly StateBlock[] | null {
    const context = this.#context;
    const { length } = this.#tokens;
    if (!context.splitsStates) {
      const state = context.readState(this.id, "all");
      return state && [{ length, state }];
    }
    const blocks = [...this.#savedBlocks];
    for (let from = blocks.at(-1)?.length ?? 0; from < length;) {
      const to = this.#blockEnd(from);
      const state = context.readRange(this.id, positionAt(from, this.#images), positionAt(to, this.#images));
      if (!state) return null;
      blocks.push({ length: to, state });
      from = to;
    }
    this.#savedBlocks = completeBlocks(blocks);
    return blocks;
  }

  /** The end of the block that starts at `from`, which is outside images. */
  #blockEnd(from: number): number {
    const end = outsideImage(Math.min(from + blockTokens, this.#tokens.length), this.#images);
    if (end > from) return end;
    const image = this.#images.find(({ start }) => start === from);
    return Math.min(this.#tokens.length, from + Math.max(blockTokens, image?.count ?? 0));
  }

  /** Replaces the sequence by a copy. If that does not fit into the KV cache, the sequence is empty afterwards. */
  restore({ tokens, images, adapters, checkpoints, promptLength, blocks }: SequenceState): void {
    this.clear();
    const context = this.#context;
    const write = ({ state }: StateBlock): boolean =>
      context.splitsStates ? context.appendState(this.id, state) : context.writeState(this.id, state, "all");
    if (!blocks.every(write)) return this.clear();
    this.append(tokens);
    if (context.splitsStates) this.#savedBlocks = completeBlocks(blocks);
    this.#promptLength = promptLength;
    this.#images = images;
    this.#removable = 0;
    this.#checkpoints = [...checkpoints];
    this.#adapters = adapters;
  }

  /** Resets the sequence to the last checkpoint of at most `maxLength` tokens, or clears it. */
  #reset(maxLength: number): void {
    const checkpoint = lastCheckpoint(this.#checkpoints, maxLength);
    const isReset =
      checkpoint &&
      this.#context.writeState(this.id, checkpoint.state, "partial") &&
      this.#context.truncate(this.id, positionAt(checkpoint.length, this.#images));
    this.#isSetBack = false;
    if (isReset) this.#shorten(checkpoint.length);
    else this.clear();
  }

  #shorten(length: number): void {
    this.#tokens.length = length;
    if (this.#images.length > 0) this.#images = this.#images.filter(({ start }) => start < length);
    this.#removable = 0;
    this.#checkpoints = this.#checkpoints.filter((checkpoint) => checkpoint.length <= length);
    this.#savedBlocks = this.#savedBlocks.filter((block) => block.length <= length);
  }
}

/** All blocks but a last one that has space for more tokens. */
function completeBlocks(blocks: readonly StateBlock[]): readonly StateBlock[] {
  const last = (blocks.at(-1)?.length ?? 0) - (blocks.at(-2)?.length ?? 0);
  return last < blockTokens ? blocks.slice(0, -1) : blocks;
}
