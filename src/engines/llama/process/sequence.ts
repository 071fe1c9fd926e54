import type { NativeContext } from "./c-api/native-context.ts";

/** One sequence of a context: which tokens its memory holds. Sequences that begin alike share that memory. */
export class Sequence {
  readonly id: number;
  readonly #context: NativeContext;
  readonly #tokens: number[] = [];

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

  /** With how many of its tokens a text begins. */
  known(tokens: readonly number[]): number {
    const most = Math.min(tokens.length, this.#tokens.length);
    let same = 0;
    while (same < most && tokens[same] === this.#tokens[same]) same++;
    return same;
  }

  /** Forgets what stands behind the first tokens. How many are left: fewer than asked for where the memory cannot be cut there. */
  keep(count: number): number {
    if (count >= this.#tokens.length) return this.#tokens.length;
    if (count <= 0 || !this.#cut(count)) this.clear();
    else this.#tokens.length = count;
    return this.#tokens.length;
  }

  /** Puts what another sequence knows in the place of its own: the first tokens of it. */
  takeFrom(other: Sequence, count: number): void {
    this.clear();
    this.#context.share(other.id, this.id);
    for (const token of other.#tokens) this.#tokens.push(token);
    this.keep(count);
  }

  /** These tokens were evaluated behind the others. */
  add(tokens: readonly number[]): void {
    for (const token of tokens) this.#tokens.push(token);
  }

  clear(): void {
    this.#tokens.length = 0;
    this.#context.forget(this.id);
  }

  /** After a pass that did not come to its end: what is not certainly there is forgotten. */
  settle(): void {
    const [, last] = this.#context.span(this.id);
    if (last + 1 !== this.#tokens.length) this.clear();
  }

  #cut(count: number): boolean {
    if (!this.#context.cut(this.id, count)) return false;
    // Layers with a window have forgotten what lies further back: the next token must find all that it looks at.
    const { window } = this.#context.model;
    const [first] = this.#context.span(this.id);
    return window === 0 || first <= Math.max(0, count - window);
  }
}
