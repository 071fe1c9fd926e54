import type { AdapterScales } from "../c-api/adapters.ts";
import type { NativeContext } from "../c-api/native-context.ts";

/** What is known of a text: in a slot, or in a copy of what a slot knew. */
export interface CachedSequence {
  readonly tokens: readonly number[];
  /** With which they were evaluated. */
  readonly adapters: AdapterScales;
  /**
   * From so many tokens on it can be cut: 0 where it can be cut anywhere. What a recurrent model knows is one state, and layers with a
   * window have forgotten what lies further back.
   */
  readonly truncatableFrom: number;
  /** Ascending. */
  readonly checkpoints: readonly Checkpoint[];
}

/** The part of a model's memory that cannot be cut, as it was behind the first tokens of a text. */
export interface Checkpoint {
  /** So many tokens. */
  readonly length: number;
  readonly state: Uint8Array;
}

/** With how many tokens two texts begin alike. */
export function commonLength(one: readonly number[], other: readonly number[]): number {
  const most = Math.min(one.length, other.length);
  let same = 0;
  while (same < most && one[same] === other[same]) same++;
  return same;
}

/** A text that is to be evaluated. */
export type SequenceTokens = Pick<CachedSequence, "tokens" | "adapters">;

/** How many of a text's tokens need not be evaluated again, `most` at most. */
export function reusable(known: CachedSequence, asked: SequenceTokens, most: number = asked.tokens.length): number {
  if (known.adapters !== asked.adapters) return 0;
  const common = Math.min(commonLength(known.tokens, asked.tokens), most);
  if (common === known.tokens.length || common >= known.truncatableFrom) return common;
  return checkpointAt(known.checkpoints, common)?.length ?? 0;
}

/** The last checkpoint within so many tokens. */
export function checkpointAt(checkpoints: readonly Checkpoint[], length: number): Checkpoint | undefined {
  return checkpoints.findLast((checkpoint) => checkpoint.length <= length);
}

/** A copy of all that a sequence knew. */
export interface SequenceState extends CachedSequence {
  readonly state: Uint8Array;
}

/** So many checkpoints a sequence has at most: the first one, where other conversations may begin alike, and the last ones. */
const mostCheckpoints = 8;

/**
 * One sequence of a context: which tokens its memory holds. Sequences that begin alike share that memory.
 *
 * The memory of recurrent models, and of layers with a window, cannot be cut where one likes. Checkpoints are copies of that part of it:
 * a sequence can go back to each of them.
 */
export class Sequence implements CachedSequence {
  readonly id: number;
  readonly #context: NativeContext;
  readonly #tokens: number[] = [];
  #checkpoints: Checkpoint[] = [];
  #adapters: AdapterScales = "";

  constructor(context: NativeContext, id: number) {
    this.#context = context;
    this.id = id;
  }

  /** What it holds. */
  get tokens(): readonly number[] {
    return this.#tokens;
  }

  /** How many tokens it holds. */
  get length(): number {
    return this.#tokens.length;
  }

  get checkpoints(): readonly Checkpoint[] {
    return this.#checkpoints;
  }

  get adapters(): AdapterScales {
    return this.#adapters;
  }

  get truncatableFrom(): number {
    const { isRecurrent, window } = this.#context.model;
    if (isRecurrent) return this.#tokens.length;
    if (window === 0) return 0;
    // The next token must find all that it looks at.
    const [first] = this.#context.positions(this.id);
    return first <= 0 ? 0 : first + window - 1;
  }

  /** From here on its tokens are evaluated with these adapters: what was evaluated with others is forgotten. */
  setAdapters(adapters: AdapterScales): void {
    if (adapters === this.#adapters) return;
    this.clear();
    this.#adapters = adapters;
  }

  /** With how many of its tokens a text begins. */
  commonLength(tokens: readonly number[]): number {
    return commonLength(this.#tokens, tokens);
  }

  /** How many of a text's tokens it need not be given again, `most` at most. */
  reusable(asked: SequenceTokens, most?: number): number {
    return reusable(this, asked, most);
  }

  /**
   * Forgets what stands behind the first tokens. How many are left: fewer than asked for where the memory cannot be cut there, as many as
   * the last checkpoint before that has.
   */
  truncate(count: number): number {
    if (count >= this.#tokens.length) return this.#tokens.length;
    if (count <= 0) this.clear();
    else if (count >= this.truncatableFrom && this.#context.truncate(this.id, count)) this.#shorten(count);
    else this.#goBack(count);
    return this.#tokens.length;
  }

  /** Puts what another sequence knows in the place of its own: the first tokens of it. */
  copyFrom(other: Sequence, count: number): void {
    this.clear();
    this.#context.copy(other.id, this.id);
    for (const token of other.#tokens) this.#tokens.push(token);
    this.#checkpoints = [...other.#checkpoints];
    this.#adapters = other.#adapters;
    this.truncate(count);
  }

  /** These tokens were evaluated behind the others. */
  append(tokens: readonly number[]): void {
    for (const token of tokens) this.#tokens.push(token);
  }

  clear(): void {
    this.#tokens.length = 0;
    this.#checkpoints = [];
    this.#context.clear(this.id);
  }

  /** After a pass that did not come to its end: what is not certainly there is forgotten. */
  rollback(): void {
    const [, last] = this.#context.positions(this.id);
    if (last + 1 !== this.#tokens.length) this.#goBack(this.#tokens.length);
  }

  /** What a checkpoint here takes, in bytes. */
  checkpointSize(): number {
    return this.#context.stateSize(this.id, "uncuttable");
  }

  /** Makes a checkpoint here. */
  checkpoint(): void {
    const { length } = this.#tokens;
    const state = this.#context.readState(this.id, "uncuttable");
    if (!state) return;
    this.#checkpoints = [...this.#checkpoints.filter((other) => other.length !== length), { length, state }];
    if (this.#checkpoints.length > mostCheckpoints) this.dropCheckpoint();
  }

  /** Drops the checkpoint that is least needed. */
  dropCheckpoint(): void {
    this.#checkpoints.splice(this.#checkpoints.length > 1 ? 1 : 0, 1);
  }

  /** What a copy of all of it takes, in bytes. */
  copySize(): number {
    return this.#context.stateSize(this.id, "all");
  }

  /** null: llama.cpp cannot copy it. */
  copy(): SequenceState | null {
    const state = this.#context.readState(this.id, "all");
    // Behind a window, only what the next token looks at is copied.
    const { isRecurrent, window } = this.#context.model;
    const { length } = this.#tokens;
    const cuttableFrom = isRecurrent ? length : window === 0 || length <= window ? 0 : length - 1;
    return (
      state && {
        tokens: [...this.#tokens],
        adapters: this.#adapters,
        truncatableFrom: cuttableFrom,
        checkpoints: this.#checkpoints,
        state,
      }
    );
  }

  /** Puts what a copy knows in the place of its own. If there is no room for that, it knows nothing then. */
  restore({ tokens, adapters, checkpoints, state }: SequenceState): void {
    this.clear();
    if (!this.#context.writeState(this.id, state, "all")) return this.clear();
    this.append(tokens);
    this.#checkpoints = [...checkpoints];
    this.#adapters = adapters;
  }

  /** Back to the last checkpoint within so many tokens, or to nothing. */
  #goBack(count: number): void {
    const checkpoint = checkpointAt(this.#checkpoints, count);
    const isBack =
      checkpoint &&
      this.#context.writeState(this.id, checkpoint.state, "uncuttable") &&
      this.#context.truncate(this.id, checkpoint.length);
    if (isBack) this.#shorten(checkpoint.length);
    else this.clear();
  }

  #shorten(count: number): void {
    this.#tokens.length = count;
    this.#checkpoints = this.#checkpoints.filter(({ length }) => length <= count);
  }
}
