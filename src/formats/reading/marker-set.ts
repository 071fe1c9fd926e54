import type { Cursor, Reading } from "./cursor.ts";

/**
 * A set of markers, compiled once: an Aho–Corasick automaton. Searching takes one step a character, however many markers there are.
 * Reference: A. Aho, M. Corasick, "Efficient string matching", CACM 18 (1975).
 */
export class MarkerSet {
  readonly markers: readonly string[];
  /** Node 0 is the root; a node stands for a beginning of a marker, `depth` characters long. */
  readonly #next: (Map<number, number> | undefined)[] = [undefined];
  /** Most nodes have one child: its character, −1: none, and the node. Further children of a node are in `#next`. */
  readonly #code: number[] = [-1];
  readonly #child: number[] = [-1];
  readonly #fail: number[] = [0];
  readonly depth: number[] = [0];
  /** The marker that ends at this node and begins where the node's path begins, −1: none. */
  readonly #own: number[] = [-1];
  /** The longest marker that ends at this node, −1: none. */
  readonly ends: number[] = [-1];
  readonly #firstAscii = new Uint8Array(128);
  readonly #firstOther = new Set<number>();

  constructor(markers: readonly string[]) {
    this.markers = markers;
    for (const [index, marker] of markers.entries()) this.#add(marker, index);
    this.#linkFailures();
  }

  #add(marker: string, index: number): void {
    if (marker === "") return;
    let node = 0;
    for (let i = 0; i < marker.length; i++) {
      const code = marker.charCodeAt(i);
      if (i === 0 && code < 128) this.#firstAscii[code] = 1;
      else if (i === 0) this.#firstOther.add(code);
      let to = this.child(node, code);
      if (to < 0) {
        to = this.#code.length;
        if (this.#code[node] === -1) {
          this.#code[node] = code;
          this.#child[node] = to;
        } else (this.#next[node] ??= new Map()).set(code, to);
        this.#next.push(undefined);
        this.#code.push(-1);
        this.#child.push(-1);
        this.#fail.push(0);
        this.depth.push(i + 1);
        this.#own.push(-1);
        this.ends.push(-1);
      }
      node = to;
    }
    if (this.#own[node] === -1) this.#own[node] = index;
  }

  /** Breadth first, so that a node's failure, which is nearer to the root, is complete before it. */
  #linkFailures(): void {
    const queue = [0];
    const link = (node: number, code: number, to: number): void => {
      const fail = node === 0 ? 0 : this.step(this.#fail[node] ?? 0, code);
      this.#fail[to] = fail;
      const own = this.#own[to] ?? -1;
      this.ends[to] = own >= 0 ? own : (this.ends[fail] ?? -1);
      queue.push(to);
    };
    for (const node of queue) {
      const code = this.#code[node] ?? -1;
      if (code >= 0) link(node, code, this.#child[node] ?? 0);
      for (const [other, to] of this.#next[node] ?? []) link(node, other, to);
    }
  }

  /** The node after one more character. */
  step(node: number, code: number): number {
    for (let at = node; ; at = this.#fail[at] ?? 0) {
      const to = this.child(at, code);
      if (to >= 0) return to;
      if (at === 0) return 0;
    }
  }

  /** The child of a node, without falling back; −1: none. */
  child(node: number, code: number): number {
    if (this.#code[node] === code) return this.#child[node] ?? -1;
    return this.#next[node]?.get(code) ?? -1;
  }

  /** The marker that is exactly this node's path, −1: none. */
  at(node: number): number {
    return this.#own[node] ?? -1;
  }

  isLeaf(node: number): boolean {
    return this.#code[node] === -1;
  }

  /** The first place from `from` on where a marker may begin, or the end of the text. */
  skip(text: string, from: number): number {
    let i = from;
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code < 128 ? this.#firstAscii[code] === 1 : this.#firstOther.has(code)) return i;
    }
    return i;
  }
}

/**
 * Reads on to the next marker: the earliest, of several at one place the longest. The text before it goes to `before` chunk by chunk,
 * which is to account for all that was passed but the last `kept` characters. Gives the marker's index, with the cursor behind the
 * marker and only the marker not accounted for; −1 at the end of the text.
 */
export function* readToMarker(cursor: Cursor, set: MarkerSet, before: (kept: number) => void): Reading<number> {
  let node = 0;
  /** The best match so far; it begins `back` characters before the position. */
  let best = -1;
  let back = 0;
  let decided = false;
  yield* cursor.repeat(() => {
    cursor.keep = -1;
    const { text } = cursor;
    let i = cursor.pos;
    for (; i < text.length && !decided; i++) {
      if (node === 0 && best < 0) {
        i = set.skip(text, i);
        if (i === text.length) break;
      }
      const to = set.step(node, text.charCodeAt(i));
      const depth = set.depth[to] ?? 0;
      if (best >= 0) {
        // Nothing that begins where the match does, or before it, goes on.
        if (depth <= back) {
          decided = true;
          break;
        }
        back++;
      }
      node = to;
      const end = set.ends[to] ?? -1;
      if (end < 0) continue;
      const length = set.markers[end]?.length ?? 0;
      if (best >= 0 && length < back) continue;
      best = end;
      back = length;
      decided = depth === length && set.isLeaf(to);
    }
    cursor.pos = i;
    if (decided) return false;
    const held = Math.max(best >= 0 ? back : 0, set.depth[node] ?? 0);
    before(held);
    if (held > 0) cursor.keep = i - held;
    return true;
  });
  cursor.keep = -1;
  if (best < 0) {
    before(0);
    return -1;
  }
  const length = set.markers[best]?.length ?? 0;
  cursor.pos += length - back;
  before(length);
  return best;
}

/**
 * Matches the longest marker that begins right here. Gives its index, with the cursor behind it; −1, with the cursor where it was,
 * when there is none.
 */
export function* matchMarker(cursor: Cursor, set: MarkerSet): Reading<number> {
  let node = 0;
  let best = -1;
  let bestLength = 0;
  let length = 0;
  for (;;) {
    if (cursor.pos + length >= cursor.text.length) {
      if (cursor.ended) break;
      if (cursor.keep < 0) cursor.keep = cursor.pos;
      yield;
      continue;
    }
    node = set.child(node, cursor.text.charCodeAt(cursor.pos + length));
    if (node < 0) break;
    length++;
    if (set.at(node) >= 0) {
      best = set.at(node);
      bestLength = length;
      if (set.isLeaf(node)) break;
    }
  }
  cursor.keep = -1;
  cursor.pos += bestLength;
  return best;
}
