import { contains } from "./code-points.ts";
import { GrammarLoadError } from "./gbnf-error.ts";
import { behind, charactersOf, type GbnfRule, type Place } from "./gbnf-rules.ts";

/**
 * Ways to read a text that a sampler may hold at a time. To filter a vocabulary of 131,072 tokens takes llama.cpp 0.6 ms for each of them.
 */
export const mostStacks = 1000;
export const tooManyWays: string = `a text can be read in more than ${mostStacks} ways at a time`;

/** What is still to come of one way to read a text: a place, and what comes behind it. Equal stacks are one object. */
export interface ParseStack {
  readonly id: number;
  /** null: nothing is to come, the text may end here. */
  readonly place: Place | null;
  readonly below: ParseStack | null;
}

interface KnownStack extends ParseStack {
  readonly below: KnownStack | null;
  readonly above: Map<Place, KnownStack>;
  /** Where this stack leads to without reading a character, and behind one; once it was asked for. */
  settled?: readonly KnownStack[];
  next?: readonly KnownStack[];
}

/**
 * The stacks that llama.cpp holds while it reads a text by a grammar (v0.5.0, `llama_grammar_advance_stack`): what it does for each token
 * takes time in proportion to their number. Here each is made once, so that following a text is cheap. `spend` hears of the work, in
 * stacks. All methods throw GrammarLoadError where there are too many.
 */
export class ParseStacks {
  readonly #spend: (work: number) => void;
  readonly #limit: number;
  readonly #bottom: KnownStack = { id: 0, place: null, below: null, above: new Map() };
  #size = 1;

  /** `limit`: so many stacks may one stack lead to. */
  constructor(spend: (work: number) => void, limit: number = mostStacks) {
    this.#spend = spend;
    this.#limit = limit;
  }

  /** How many different stacks there have been. */
  get size(): number {
    return this.#size;
  }

  /** The stacks at the beginning of a rule, with nothing behind it. */
  from(rule: GbnfRule): readonly ParseStack[] {
    const stacks = new Set<KnownStack>();
    for (const place of rule.options)
      for (const stack of this.#settle(this.#push(this.#bottom, place))) stacks.add(stack);
    return [...stacks];
  }

  /** The stacks at a place within a rule, with nothing behind the rule. */
  at(place: Place): readonly ParseStack[] {
    return this.#settle(this.#push(this.#bottom, place));
  }

  /** The stacks behind the character that `stack` reads next. */
  after(stack: ParseStack): readonly ParseStack[] {
    const known = stack as KnownStack;
    if (known.place === null || known.below === null) return [];
    known.next ??= this.#settle(this.#push(known.below, behind(known.place)));
    return known.next;
  }

  /** The stacks behind one more character of a text; none: the grammar does not allow it. */
  read(stacks: Iterable<ParseStack>, codePoint: number): ReadonlySet<ParseStack> {
    const next = new Set<ParseStack>();
    for (const stack of stacks) {
      if (stack.place === null || !contains(charactersOf(stack.place), codePoint)) continue;
      for (const reached of this.after(stack)) next.add(reached);
      this.#spend(1);
    }
    return next;
  }

  #push(below: KnownStack, place: Place | null): KnownStack {
    if (place === null) return below;
    let stack = below.above.get(place);
    if (!stack) below.above.set(place, (stack = { id: this.#size++, place, below, above: new Map() }));
    return stack;
  }

  /** Goes on from a stack to where a character is next, all ways, each way once. */
  #settle(stack: KnownStack): readonly KnownStack[] {
    if (stack.settled) return stack.settled;
    const settled: KnownStack[] = [];
    const seen = new Set<KnownStack>([stack]);
    for (const open of seen) {
      this.#spend(1);
      if (settled.length > this.#limit || seen.size > 20 * this.#limit) throw new GrammarLoadError(tooManyWays);
      const { place, below } = open;
      if (place?.kind !== "rule" || below === null) {
        settled.push(open);
        continue;
      }
      const rest = this.#push(below, behind(place));
      for (const option of place.rule.options) seen.add(this.#push(rest, option));
    }
    return (stack.settled = settled);
  }
}
