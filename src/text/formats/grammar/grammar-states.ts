import { type CodePoints, includesCodePoint } from "./code-points.ts";
import { GrammarLoadError } from "./grammar-errors.ts";
import { following, type GbnfRule, type RulePosition, type TokenPosition } from "./read-gbnf.ts";

/**
 * The cost of following a grammar, in steps: about three million per second. An ambiguous grammar has ever more states, so every loop over
 * them takes its steps from this budget.
 */
export class GrammarBudget {
  readonly #most: number;
  #left: number;

  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  /** Takes steps. Throws GrammarLoadError when none are left. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new GrammarLoadError("a text can be read in too many ways to follow them all");
  }

  /** Adds steps, up to the initial number. */
  refill(steps: number): void {
    this.#left = Math.min(this.#most, Math.max(0, this.#left) + steps);
  }
}

/** The rest of one parse: a position, and what follows its rule. Equal stacks are one object. */
interface Stack {
  readonly id: number;
  /** null: nothing is left, so the text may end here. */
  readonly place: RulePosition | null;
  readonly below: Stack | null;
  /** The stacks with one more position on top of this one. */
  above: Map<RulePosition, Stack> | undefined;
}

/** The cost of a new stack in steps: it also takes about 150 bytes of memory. */
const newStackSteps = 5;

/** A character of several bytes whose last bytes are missing. */
interface PartialCharacter {
  /** The bits so far. */
  readonly value: number;
  readonly missing: number;
  /** The smallest character that may be encoded with this number of bytes (Unicode, table 3-7). */
  readonly least: number;
}

/**
 * A grammar as an automaton over UTF-8 bytes, which is built lazily. A state is the set of all parses of the text so far: texts with the
 * same parses share a state, and its transitions are computed once.
 *
 * llama.cpp's own implementation keeps no states: it follows every parse of every candidate token again, including parses that have become
 * equal, and cannot be interrupted. `root ::= ("a"? "b"?){1,180}` blocked a model for minutes.
 */
export class GrammarStates {
  readonly #root: GbnfRule;
  readonly #states = new Map<string, GrammarState>();
  readonly #bottom: Stack = { id: 0, place: null, below: null, above: undefined };
  #stacks = 1;
  #size = 0;

  constructor(root: GbnfRule) {
    this.#root = root;
  }

  /** The size of what was built so far, in entries of about ten to 150 bytes. */
  get size(): number {
    return this.#size + this.#stacks;
  }

  /** The state before the first character, or null if the grammar allows no text. */
  start(budget: GrammarBudget): GrammarState | null {
    return this.stateOf(
      this.#root.options.map((option) => this.push(this.#bottom, option, budget)),
      budget,
    );
  }

  push(below: Stack, place: RulePosition | null, budget: GrammarBudget): Stack {
    if (place === null) return below;
    let stack = below.above?.get(place);
    if (stack) return stack;
    budget.spend(newStackSteps);
    stack = { id: this.#stacks++, place, below, above: undefined };
    (below.above ??= new Map()).set(place, stack);
    return stack;
  }

  /** The state of these stacks, after expanding each until a character or a token is next. null if there are none. */
  stateOf(stacks: Iterable<Stack>, budget: GrammarBudget): GrammarState | null {
    const expanded: Stack[] = [];
    const seen = new Set<Stack>(stacks);
    for (const stack of seen) {
      budget.spend(1);
      const { place, below } = stack;
      if (place?.kind !== "rule" || below === null) {
        expanded.push(stack);
        continue;
      }
      const rest = this.push(below, following(place), budget);
      for (const option of place.rule.options) seen.add(this.push(rest, option, budget));
    }
    if (expanded.length === 0) return null;
    expanded.sort((one, other) => one.id - other.id);
    budget.spend(expanded.length);
    const key = expanded.map(({ id }) => id).join(" ");
    let state = this.#states.get(key);
    if (!state) {
      this.#states.set(key, (state = new GrammarState(this, expanded, null)));
      this.#size += expanded.length;
    }
    return state;
  }

  /** Counts a transition or a list of tokens that is kept. */
  grow(entries: number): void {
    this.#size += entries;
  }
}

/** All parses of the text so far. */
export class GrammarState {
  /** The text may end here. */
  readonly mayEnd: boolean;
  /** Tokens that the grammar names at this point, each with the stack that it continues. */
  readonly tokenPositions: readonly { readonly place: TokenPosition; readonly stack: Stack }[];
  readonly #all: GrammarStates;
  readonly #stacks: readonly Stack[];
  readonly #open: PartialCharacter | null;
  readonly #next = new Map<number, GrammarState | null>();
  /** 1 for each byte that may begin a character here, once it was computed. */
  #first: Uint8Array | undefined;

  constructor(all: GrammarStates, stacks: readonly Stack[], open: PartialCharacter | null) {
    this.#all = all;
    this.#stacks = stacks;
    this.#open = open;
    this.mayEnd = open === null && stacks.some(({ place }) => place === null);
    this.tokenPositions = stacks.flatMap((stack) =>
      open === null && stack.place?.kind === "token" ? [{ place: stack.place, stack }] : [],
    );
  }

  /** The state after one more byte, or null if the grammar does not allow it. Throws GrammarLoadError if the budget is exhausted. */
  next(byte: number, budget: GrammarBudget): GrammarState | null {
    // A walk through the vocabulary asks about every byte.
    if (this.#open === null && (this.#first ??= this.#firstBytes(budget))[byte] === 0) return null;
    let next = this.#next.get(byte);
    if (next === undefined) {
      budget.spend(this.#stacks.length + 1);
      next = this.#after(byte, budget);
      this.#next.set(byte, next);
      this.#all.grow(1);
    }
    return next;
  }

  /** The state after these bytes, or null if the grammar does not allow them. */
  read(bytes: Iterable<number>, budget: GrammarBudget): GrammarState | null {
    return readFrom(this, bytes, budget);
  }

  /** The state after a token of these bytes. `matches` compares the token with those that the grammar names. */
  readToken(bytes: Uint8Array, matches: (place: TokenPosition) => boolean, budget: GrammarBudget): GrammarState | null {
    const byBytes = bytes.length === 0 ? null : this.read(bytes, budget);
    if (this.tokenPositions.length === 0) return byBytes;
    const named: Stack[] = [];
    for (const { place, stack } of this.tokenPositions)
      if (stack.below && matches(place)) named.push(this.#all.push(stack.below, following(place), budget));
    if (named.length === 0) return byBytes;
    // An incomplete character and a complete token cannot be one state: the token takes precedence.
    const others = byBytes === null || byBytes.#open !== null ? [] : byBytes.#stacks;
    return this.#all.stateOf([...named, ...others], budget);
  }

  #firstBytes(budget: GrammarBudget): Uint8Array {
    budget.spend(this.#stacks.length);
    this.#all.grow(1);
    const first = new Uint8Array(256);
    const sets = new Set<CodePoints>();
    for (const { place } of this.#stacks) {
      if (place?.kind === "text") markFirstBytes(first, place.text.codePointAt(place.at) ?? 0);
      else if (place?.kind === "chars") sets.add(place.set);
    }
    for (const set of sets) {
      budget.spend(set.length);
      for (const [from, to] of set) markFirstBytes(first, from, to);
    }
    return first;
  }

  #after(byte: number, budget: GrammarBudget): GrammarState | null {
    if (this.#open === null) {
      if (byte < 0x80) return this.#afterCharacter(byte, budget);
      const open = firstByte(byte);
      return open && this.#within(open);
    }
    if (byte >> 6 !== 2) return null;
    const { missing, least } = this.#open;
    const value = (this.#open.value << 6) | (byte & 0x3f);
    if (missing > 1) return this.#within({ value, missing: missing - 1, least });
    return value < least ? null : this.#afterCharacter(value, budget);
  }

  #afterCharacter(value: number, budget: GrammarBudget): GrammarState | null {
    const stacks: Stack[] = [];
    for (const { place, below } of this.#stacks)
      if (place !== null && below !== null && reads(place, value))
        stacks.push(this.#all.push(below, following(place), budget));
    return stacks.length === 0 ? null : this.#all.stateOf(stacks, budget);
  }

  /** The parses that continue with a character that begins with these bits. */
  #within(open: PartialCharacter): GrammarState | null {
    const bits = 6 * open.missing;
    const first = Math.max(open.value * 2 ** bits, open.least);
    const last = (open.value + 1) * 2 ** bits - 1;
    const stacks = this.#stacks.filter(({ place }) => place !== null && readsBetween(place, first, last));
    if (stacks.length === 0) return null;
    this.#all.grow(stacks.length);
    return new GrammarState(this.#all, stacks, open);
  }
}

function readFrom(start: GrammarState, bytes: Iterable<number>, budget: GrammarBudget): GrammarState | null {
  let state: GrammarState | null = start;
  for (const byte of bytes) {
    state = state.next(byte, budget);
    if (state === null) return null;
  }
  return state;
}

/** The character that begins with this byte, or null if there is none. */
function firstByte(byte: number): PartialCharacter | null {
  if (byte < 0xc2 || byte > 0xf4) return null;
  if (byte < 0xe0) return { value: byte & 0x1f, missing: 1, least: 0x80 };
  if (byte < 0xf0) return { value: byte & 0x0f, missing: 2, least: 0x800 };
  return { value: byte & 0x07, missing: 3, least: 0x10000 };
}

/** Marks the bytes that characters from `from` to `to` begin with, and possibly further bytes above 0x7F. */
function markFirstBytes(first: Uint8Array, from: number, to: number = from): void {
  if (from < 0x80) first.fill(1, from, Math.min(to, 0x7f) + 1);
  if (to >= 0x80) first.fill(1, leadByte(Math.max(from, 0x80)), leadByte(to) + 1);
}

function leadByte(value: number): number {
  if (value < 0x800) return 0xc0 | (value >> 6);
  return value < 0x10000 ? 0xe0 | (value >> 12) : 0xf0 | (value >> 18);
}

function reads(place: RulePosition, value: number): boolean {
  if (place.kind === "text") return place.text.codePointAt(place.at) === value;
  return place.kind === "chars" && includesCodePoint(place.set, value);
}

function readsBetween(place: RulePosition, first: number, last: number): boolean {
  if (place.kind === "text") {
    const value = place.text.codePointAt(place.at) ?? 0;
    return first <= value && value <= last;
  }
  return place.kind === "chars" && overlaps(place.set, first, last);
}

function overlaps(set: CodePoints, first: number, last: number): boolean {
  return set.some(([from, to]) => from <= last && first <= to);
}
