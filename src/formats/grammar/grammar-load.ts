import { GrammarLoadError } from "./gbnf-error.ts";
import { charactersOf } from "./gbnf-rules.ts";
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

/** Where to look is a matter of taste, and when to stop of time: what stands deeper is left to the watch over the running answer. */
const mostWork = 60_000;

/**
 * Follows the texts of a grammar as llama.cpp would, from its root and from each of its rules on, those with the most ways first.
 * `longestToken`: characters of the longest token in the vocabulary.
 *
 * @throws {GrammarLoadError} if a text can be read in too many ways.
 * @throws {GbnfError} for a rule that begins with itself.
 */
export function checkLoad({ root, rules }: GbnfRules, longestToken: number): void {
  checkBeginnings(rules);
  let work = 0;
  const stacks = new ParseStacks((spent) => (work += spent));
  const seen = new Map<string, number>();
  const open = new Heaviest();
  const add = (ways: Ways, depth: number): void => {
    const steps = stepsOf(ways);
    checkWays(ways.size, steps);
    if (depth >= window) return;
    const key = keyOf(ways);
    const known = seen.get(key);
    // The same ways again are worth following only if they are much heavier.
    if (known !== undefined && known * 2 > steps) return;
    seen.set(key, steps);
    open.add({ ways, depth, steps });
  };
  for (const rule of [root, ...rules]) {
    add(new Map(stacks.from(rule).map((stack) => [stack, 1])), 0);
    if (work > mostWork) return;
  }
  for (let state = open.take(); state && work <= mostWork; state = open.take()) {
    const { ways, depth } = state;
    for (const { value, reading } of piecesOf(ways.keys())) {
      const { next, taken } = step(stacks, ways, reading);
      work += reading.length + next.size + 1;
      add(next, depth + 1);
      if (taken > next.size) followRun(stacks, next, value, longestToken);
      if (work > mostWork) return;
    }
  }
}

/** Ways to read a text, each with the number of times that llama.cpp takes it. */
type Ways = ReadonlyMap<ParseStack, number>;

/** Tokens that repeat one character (spaces, hyphens) are the longest. */
function followRun(stacks: ParseStacks, from: Ways, value: number, length: number): void {
  let ways = from;
  for (let at = 2; at < length && ways.size > 0; at++) {
    const reading = [...ways.keys()].filter((stack) => reads(stack, value));
    ways = step(stacks, ways, reading).next;
    checkWays(ways.size, stepsOf(ways));
  }
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
  readonly steps: number;
}

/** Gives the heaviest first: a binary heap. */
class Heaviest {
  readonly #heap: State[] = [];

  add(state: State): void {
    const heap = this.#heap;
    let at = heap.push(state) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (weightAt(heap, parent) >= state.steps) break;
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
      const child = weightAt(heap, left + 1) > weightAt(heap, left) ? left + 1 : left;
      if (weightAt(heap, child) <= last.steps) break;
      heap[at] = heap[child] ?? last;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function weightAt(heap: readonly State[], at: number): number {
  return heap[at]?.steps ?? -1;
}
