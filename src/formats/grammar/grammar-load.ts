import { GrammarLoadError } from "./gbnf-error.ts";
import { charactersOf, type Place } from "./gbnf-rules.ts";
import { mostStacks, ParseStacks, tooManyWays, type ParseStack } from "./parse-stacks.ts";
import type { GbnfRules } from "./read-gbnf.ts";
import { checkBeginnings } from "./rule-beginnings.ts";

/**
 * llama.cpp reads each token of the vocabulary along every way that there is, and does not notice where two ways have become one. Within
 * one token, so many steps are taken at most.
 */
const mostSteps = 400_000;

/** How far ahead every text is followed: few tokens of a vocabulary are longer, but for those that repeat one character. */
const window = 16;

/** How much is looked at, in stacks that are followed by a character: in all, and for each place to begin at. */
const mostWork = { least: 60_000, place: 20, most: 600_000 };

/**
 * Follows the texts of a grammar as llama.cpp would, from its root and from each place where a rule begins, so that nothing hides behind a
 * long beginning. `longestToken`: characters of the longest token in the vocabulary.
 *
 * @returns the most ways at a time that were found.
 * @throws {GrammarLoadError} if a text can be read in too many ways. @throws {GbnfError} for a rule that begins with itself.
 */
export function checkLoad({ root, rules }: GbnfRules, longestToken: number): number {
  checkBeginnings(rules);
  let work = 0;
  let mostWays = 0;
  const stacks = new ParseStacks((spent) => (work += spent));
  const seen = new Map<string, number>();
  const open = new OpenStates();
  const add = (ways: Ways, depth: number): void => {
    const steps = stepsOf(ways);
    checkWays(ways.size, steps);
    mostWays = Math.max(mostWays, ways.size);
    if (depth >= window) return;
    const key = keyOf(ways);
    const known = seen.get(key);
    // The same ways again are worth following only if they are much heavier.
    if (known !== undefined && known * 2 > steps) return;
    seen.set(key, steps);
    open.add({ ways, depth, size: ways.size, repeated: steps / ways.size });
  };
  const begin = (from: readonly ParseStack[]): void => add(new Map(from.map((stack) => [stack, 1])), 0);
  let limit = mostWork.least;
  const isOver = (): boolean => work > Math.min(limit, mostWork.most);
  begin(stacks.from(root));
  for (const place of placesOfRules(rules)) {
    begin(stacks.at(place));
    limit += mostWork.place;
    if (isOver()) return mostWays;
  }
  for (let state = open.take(); state && !isOver(); state = open.take()) {
    const { ways, depth } = state;
    for (const { value, reading } of piecesOf(ways.keys())) {
      const { next, taken } = step(stacks, ways, reading);
      work += reading.length + next.size + 1;
      add(next, depth + 1);
      if (taken > next.size) work += followRun(stacks, next, value, longestToken);
      if (isOver()) return mostWays;
    }
  }
  return mostWays;
}

function* placesOfRules(rules: GbnfRules["rules"]): Generator<Place> {
  for (const { options } of rules)
    for (const option of options)
      for (let place = option; place !== null; place = place.next) if (place.kind === "rule") yield place;
}

/** Ways to read a text, each with the number of times that llama.cpp takes it. */
type Ways = ReadonlyMap<ParseStack, number>;

/** Tokens that repeat one character (spaces, hyphens) are the longest. */
function followRun(stacks: ParseStacks, from: Ways, value: number, length: number): number {
  let ways = from;
  let work = 0;
  for (let at = 2; at < length && ways.size > 0; at++) {
    const reading = [...ways.keys()].filter((stack) => reads(stack, value));
    ways = step(stacks, ways, reading).next;
    checkWays(ways.size, stepsOf(ways));
    work += ways.size;
  }
  return work;
}

function step(
  stacks: ParseStacks,
  ways: Ways,
  reading: Iterable<ParseStack>,
): { readonly next: Ways; readonly taken: number } {
  const next = new Map<ParseStack, number>();
  let taken = 0;
  for (const stack of reading) {
    const times = ways.get(stack) ?? 0;
    for (const reached of stacks.after(stack)) {
      next.set(reached, (next.get(reached) ?? 0) + times);
      taken++;
    }
  }
  return { next, taken };
}

function checkWays(stacks: number, steps: number): void {
  if (stacks > mostStacks) throw new GrammarLoadError(tooManyWays);
  if (steps > mostSteps)
    throw new GrammarLoadError(
      `it is ambiguous: one word can be read along more than ${mostSteps} ways (as in '("a" | "a")*')`,
    );
}

function stepsOf(ways: Ways): number {
  let steps = 0;
  for (const times of ways.values()) steps += times;
  return steps;
}

function keyOf(ways: Ways): string {
  return [...ways.keys()]
    .map(({ id }) => id)
    .sort((a, b) => a - b)
    .join(" ");
}

function reads({ place }: ParseStack, value: number): boolean {
  return place !== null && charactersOf(place).some(([first, last]) => first <= value && value <= last);
}

/** The characters that tell these stacks apart, as ranges, each with the stacks that read it. */
export function piecesOf(
  stacks: Iterable<ParseStack>,
): readonly { readonly value: number; readonly last: number; readonly reading: readonly ParseStack[] }[] {
  const edges = new Map<number, { begin: ParseStack[]; end: ParseStack[] }>();
  const edge = (at: number): { begin: ParseStack[]; end: ParseStack[] } => {
    let known = edges.get(at);
    if (!known) edges.set(at, (known = { begin: [], end: [] }));
    return known;
  };
  for (const stack of stacks) {
    if (stack.place === null) continue;
    for (const [first, last] of charactersOf(stack.place)) {
      edge(first).begin.push(stack);
      edge(last + 1).end.push(stack);
    }
  }
  const pieces: { value: number; last: number; reading: ParseStack[] }[] = [];
  const reading = new Set<ParseStack>();
  for (const [at, { begin, end }] of [...edges].sort(([a], [b]) => a - b)) {
    const previous = pieces.at(-1);
    if (previous && reading.size > 0) previous.last = at - 1;
    for (const stack of end) reading.delete(stack);
    for (const stack of begin) reading.add(stack);
    if (reading.size > 0) pieces.push({ value: at, last: at, reading: [...reading] });
  }
  return pieces;
}

interface State {
  readonly ways: Ways;
  readonly depth: number;
  readonly size: number;
  /** How often llama.cpp takes each of the ways, on the average. */
  readonly repeated: number;
}

/** States to go on from, by turns the one that came first, the one with the most ways, and the one whose ways are taken most often. */
class OpenStates {
  readonly #inOrder: State[] = [];
  readonly #queues = [new Greatest(({ size }) => size), new Greatest(({ repeated }) => repeated)];
  readonly #taken = new Set<State>();
  #first = 0;
  #turn = 0;

  add(state: State): void {
    this.#inOrder.push(state);
    for (const queue of this.#queues) queue.add(state);
  }

  take(): State | undefined {
    for (;;) {
      const turn = this.#turn++ % 3;
      const state = turn === 2 ? this.#inOrder[this.#first++] : this.#queues[turn]?.take();
      // Each is in all three, so the first empty one says that nothing is left.
      if (!state) return undefined;
      if (this.#taken.has(state)) continue;
      this.#taken.add(state);
      return state;
    }
  }
}

/** Gives the greatest first: a binary heap. */
class Greatest {
  readonly #heap: State[] = [];
  readonly #of: (state: State) => number;

  constructor(of: (state: State) => number) {
    this.#of = of;
  }

  add(state: State): void {
    const heap = this.#heap;
    let at = heap.push(state) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#at(parent) >= this.#of(state)) break;
      heap[at] = heap[parent] ?? state;
      at = parent;
    }
    heap[at] = state;
  }

  take(): State | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const child = this.#at(left + 1) > this.#at(left) ? left + 1 : left;
      if (this.#at(child) <= this.#of(last)) break;
      heap[at] = heap[child] ?? last;
      at = child;
    }
    heap[at] = last;
    return first;
  }

  #at(index: number): number {
    const state = this.#heap[index];
    return state ? this.#of(state) : -1;
  }
}
