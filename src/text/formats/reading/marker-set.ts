import { type Cursor, notYet, type Parser } from "./cursor.ts";

/**
 * A set of markers, compiled to an Aho–Corasick automaton: a search takes one step per character, independent of the number of markers.
 * Reference: A. Aho, M. Corasick, "Efficient string matching", CACM 18 (1975).
 */
export class MarkerSet {
  readonly markers: readonly string[];
  /** Node 0 is the root; a node represents a marker prefix of `depth` characters. Children beyond the first of a node. */
  readonly #next: (Map<number, number> | undefined)[] = [undefined];
  /** The first child of each node (most have only one): its character, or −1, and its node. */
  readonly #code: number[] = [-1];
  readonly #child: number[] = [-1];
  readonly #fail: number[] = [0];
  readonly depth: number[] = [0];
  /** The marker that is exactly the path to this node, or −1. */
  readonly #own: number[] = [-1];
  /** The longest marker that ends at this node, or −1. */
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

  /** Breadth first, so that the failure link of a node, which is closer to the root, is complete before the node is linked. */
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

  /** The node after reading one more character. */
  step(node: number, code: number): number {
    for (let at = node; ; at = this.#fail[at] ?? 0) {
      const to = this.child(at, code);
      if (to >= 0) return to;
      if (at === 0) return 0;
    }
  }

  /** The child of a node without following failure links, or −1. */
  child(node: number, code: number): number {
    if (this.#code[node] === code) return this.#child[node] ?? -1;
    return this.#next[node]?.get(code) ?? -1;
  }

  /** The marker that is exactly the path to this node, or −1. */
  at(node: number): number {
    return this.#own[node] ?? -1;
  }

  /** The length of the marker with this index; 0 for −1. */
  length(index: number): number {
    return this.markers[index]?.length ?? 0;
  }

  isLeaf(node: number): boolean {
    return this.#code[node] === -1;
  }

  /** The first position from `from` on where a marker may begin, or the length of the text. */
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
 * Reads up to the next marker: the earliest one, and of several at the same position the longest. If `text` is given, the text before the
 * marker is consumed and passed to it chunk by chunk; otherwise everything stays pending. Returns the index of the marker, with the cursor
 * after the marker and the marker pending, or −1 at the end of the text.
 */
export function* readToMarker(cursor: Cursor, set: MarkerSet, text?: (raw: string) => void): Parser<number> {
  let node = 0;
  /** The best match so far, which begins `back` characters before the position. */
  let best = -1;
  let back = 0;
  let decided = false;
  yield* cursor.repeat(() => {
    cursor.keep = -1;
    const input = cursor.text;
    let i = cursor.pos;
    for (; i < input.length && !decided; i++) {
      if (node === 0 && best < 0) {
        i = set.skip(input, i);
        if (i === input.length) break;
      }
      const to = set.step(node, input.charCodeAt(i));
      const depth = set.depth[to] ?? 0;
      if (best >= 0) {
        // No marker that begins at or before the match can be continued.
        if (depth <= back) {
          decided = true;
          break;
        }
        back++;
      }
      node = to;
      const end = set.ends[to] ?? -1;
      if (end < 0) continue;
      const length = set.length(end);
      if (best >= 0 && length < back) continue;
      best = end;
      back = length;
      decided = depth === length && set.isLeaf(to);
    }
    cursor.pos = i;
    if (decided) return false;
    const held = Math.max(best >= 0 ? back : 0, set.depth[node] ?? 0);
    text?.(cursor.take(held));
    if (held > 0) cursor.keep = i - held;
    return true;
  });
  cursor.keep = -1;
  if (best >= 0) cursor.pos += set.length(best) - back;
  text?.(cursor.take(set.length(best)));
  return best;
}

/** Like `readToMarker`, but leaves the cursor before the marker. */
export function* readBeforeMarker(cursor: Cursor, set: MarkerSet, text?: (raw: string) => void): Parser<number> {
  const found = yield* readToMarker(cursor, set, text);
  cursor.pos -= set.length(found);
  return found;
}

/** Matches the longest marker at the cursor. Returns its index, with the cursor after it, or −1, with the cursor unchanged. */
export function* matchMarker(cursor: Cursor, set: MarkerSet): Parser<number> {
  let node = 0;
  let best = -1;
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
      if (set.isLeaf(node)) break;
    }
  }
  cursor.keep = -1;
  cursor.pos += set.length(best);
  return best;
}

/** Whether one of the markers begins with this character. */
export function mayStart(set: MarkerSet, code: number): boolean {
  return set.child(0, code) >= 0;
}

/** A name, key or header, and the index of the marker that ended it. */
interface NameText {
  readonly text: string;
  readonly end: number;
}

/**
 * Reads a name up to one of the markers `ends`, which is passed. Returns null if the text ends, if it gets longer than `max` characters,
 * or at a character for which `stop` is true; the cursor is then at that point.
 */
export function* readName(
  cursor: Cursor,
  ends: MarkerSet,
  max: number,
  stop: (code: number) => boolean,
): Parser<NameText | null> {
  let text = "";
  for (;;) {
    let code = cursor.code();
    if (code === notYet) code = yield* cursor.peek();
    if (code < 0 || text.length > max) return null;
    if (mayStart(ends, code)) {
      const end = yield* matchMarker(cursor, ends);
      if (end >= 0) return { text, end };
    }
    if (stop(code)) return null;
    text += cursor.text[cursor.pos];
    cursor.pos++;
  }
}
