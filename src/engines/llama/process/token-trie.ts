import type { Vocabulary } from "./vocabulary.ts";

/**
 * The tokens of a vocabulary by their bytes, as a tree in the order of a walk from the root: each node has the byte that leads to it and
 * the node that follows all below it. Tokens that end a turn, tokens without bytes, and tokens with a NUL, which no grammar of llama.cpp
 * reads, are not in it.
 */
export class TokenTrie {
  /** Tokens that may come wherever a text may end. */
  readonly ends: readonly number[];
  readonly #bytes: Uint8Array;
  readonly #depths: Uint16Array;
  /** The node that follows all nodes below this one. */
  readonly #after: Int32Array;
  /** The tokens of a node are `tokens` from here to where those of the next node begin. */
  readonly #firstTokens: Int32Array;
  /** In the order of their bytes. */
  readonly tokens: Int32Array;

  constructor(vocabulary: Pick<Vocabulary, "size" | "bytes" | "endTokens">) {
    this.ends = vocabulary.endTokens();
    const ends = new Set(this.ends);
    const tokens: { readonly token: number; readonly bytes: Uint8Array }[] = [];
    let nodes = 1;
    for (let token = 0; token < vocabulary.size; token++) {
      const bytes = vocabulary.bytes(token);
      if (ends.has(token) || bytes.length === 0 || bytes.length > longest || bytes.includes(0)) continue;
      tokens.push({ token, bytes });
      nodes += bytes.length;
    }
    tokens.sort((one, other) => Buffer.compare(one.bytes, other.bytes));
    const bytesOfNodes = new Uint8Array(nodes);
    const depths = new Uint16Array(nodes);
    const firstTokens = new Int32Array(nodes + 1);
    let count = 1;
    let before = new Uint8Array();
    for (const [at, { bytes }] of tokens.entries()) {
      let depth = 0;
      while (depth < before.length && bytes[depth] === before[depth]) depth++;
      for (; depth < bytes.length; depth++) {
        bytesOfNodes[count] = bytes[depth] ?? 0;
        depths[count] = depth + 1;
        firstTokens[count++] = at;
      }
      before = bytes as Uint8Array<ArrayBuffer>;
    }
    firstTokens[count] = tokens.length;
    // The root and nodes on the way have no tokens: theirs begin where those of the next node do. A node's own tokens come first.
    this.#bytes = bytesOfNodes.slice(0, count);
    this.#depths = depths.slice(0, count);
    this.#firstTokens = Int32Array.from({ length: count + 1 }, (_, node) => firstTokens[node] ?? 0);
    this.tokens = Int32Array.from(tokens, ({ token }) => token);
    this.#after = new Int32Array(count);
    const open: number[] = [];
    for (let node = 0; node < count; node++) {
      const depth = this.#depths[node] ?? 0;
      while (open.length > 0 && (this.#depths[open.at(-1) ?? 0] ?? 0) >= depth) this.#after[open.pop() ?? 0] = node;
      open.push(node);
    }
    for (const node of open) this.#after[node] = count;
  }

  /**
   * Collects the tokens whose bytes `next` leads through, from `start` on. `visit` is called for each node that is looked at, and ends the
   * walk where it returns false: then the result is null.
   */
  walk<State>(
    start: State,
    next: (state: State, byte: number) => State | null,
    visit: (found: number) => boolean,
  ): number[] | null {
    const found: number[] = [];
    const states: State[] = [start];
    const count = this.#bytes.length;
    for (let node = 1; node < count;) {
      if (!visit(found.length)) return null;
      const depth = this.#depths[node] ?? 0;
      const state = next(states[depth - 1] as State, this.#bytes[node] ?? 0);
      if (state === null) {
        node = this.#after[node] ?? count;
        continue;
      }
      states[depth] = state;
      const last = this.#firstTokens[node + 1] ?? 0;
      for (let at = this.#firstTokens[node] ?? 0; at < last; at++) found.push(this.tokens[at] ?? 0);
      node++;
    }
    return found;
  }
}

/** Bytes of the longest token that is looked at: no vocabulary has a longer one. */
const longest = 65_535;
