import type { AdapterScales } from "./adapter-scales.ts";

/** What is known of a text: in a slot, or in a copy of what a slot knew. */
export interface Remembered {
  readonly tokens: readonly number[];
  /** With which they were evaluated. */
  readonly adapters: AdapterScales;
  /**
   * From so many tokens on it can be cut: 0 where it can be cut anywhere. What a recurrent model knows is one state, and layers with a
   * window have forgotten what lies further back.
   */
  readonly cuttableFrom: number;
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
export type AskedText = Pick<Remembered, "tokens" | "adapters">;

/** How many of a text's tokens need not be evaluated again, `most` at most. */
export function reusable(known: Remembered, asked: AskedText, most: number = asked.tokens.length): number {
  if (known.adapters !== asked.adapters) return 0;
  const common = Math.min(commonLength(known.tokens, asked.tokens), most);
  if (common === known.tokens.length || common >= known.cuttableFrom) return common;
  return checkpointAt(known.checkpoints, common)?.length ?? 0;
}

/** The last checkpoint within so many tokens. */
export function checkpointAt(checkpoints: readonly Checkpoint[], length: number): Checkpoint | undefined {
  return checkpoints.findLast((checkpoint) => checkpoint.length <= length);
}
