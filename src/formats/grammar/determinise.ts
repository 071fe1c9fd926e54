import { union, type CodePoints } from "./code-points.ts";
import { chars, choiceOf, empty, rule, sequence, type Expression } from "./expression.ts";
import { GrammarLoadError } from "./gbnf-error.ts";
import type { GrammarData } from "./grammar.ts";
import { piecesOf } from "./grammar-load.ts";
import { mostStacks, ParseStacks, type ParseStack } from "./parse-stacks.ts";
import type { GbnfRules } from "./read-gbnf.ts";

/** More states than this are a grammar that does not repay the time. */
const mostStates = 10_000;

/** So many ways at a time are followed. Things in each other double them: they are soon more. */
const mostWays = 5 * mostStacks;

/**
 * The same texts as an automaton that is in one state at a time, so that a sampler follows one way where the grammar has thousands
 * (Rabin and Scott 1959): a rule for each set of ways that a text may be read in.
 *
 * @param mostWork in stacks that are followed by a character: three million take about a second.
 * @returns null where there are too many such sets, as in every grammar of things that stand in each other.
 */
export function determinised({ root, hasTokens }: GbnfRules, mostWork: number): GrammarData | null {
  if (hasTokens) return null;
  try {
    return new Automaton(mostWork).of(root);
  } catch (error) {
    if (error instanceof GrammarLoadError) return null;
    throw error;
  }
}

class Automaton {
  readonly #stacks = new ParseStacks((work) => this.#spend(work), mostWays);
  readonly #names = new Map<string, string>();
  readonly #open: (readonly [name: string, ways: readonly ParseStack[]])[] = [];
  #left: number;

  constructor(mostWork: number) {
    this.#left = mostWork;
  }

  of(root: GbnfRules["root"]): GrammarData {
    const rules: (readonly [string, Expression])[] = [];
    const start = this.#nameOf(new Set(this.#stacks.from(root)));
    for (const [name, ways] of this.#open) {
      const moves = new Map<string, CodePoints>();
      for (const { value, last, reading } of piecesOf(ways)) {
        const next = new Set<ParseStack>();
        for (const stack of reading) for (const reached of this.#stacks.after(stack)) next.add(reached);
        this.#spend(reading.length + next.size);
        const to = this.#nameOf(next);
        moves.set(to, union(moves.get(to) ?? [], [[value, last]]));
      }
      if (moves.size > mostStacks) throw new GrammarLoadError("too many moves");
      const mayEnd = ways.some(({ place }) => place === null);
      const options = [...moves].map(([to, set]) => sequence(chars(set), rule(to)));
      rules.push([name, choiceOf(mayEnd ? [empty, ...options] : options)]);
    }
    return { root: rule(start), rules };
  }

  #nameOf(ways: ReadonlySet<ParseStack>): string {
    if (ways.size > mostWays) throw new GrammarLoadError("too many ways");
    const sorted = [...ways].sort((a, b) => a.id - b.id);
    const key = sorted.map(({ id }) => id).join(" ");
    let name = this.#names.get(key);
    if (name === undefined) {
      this.#names.set(key, (name = `state-${this.#names.size}`));
      this.#open.push([name, sorted]);
      if (this.#names.size > mostStates) throw new GrammarLoadError("too many states");
    }
    return name;
  }

  #spend(work: number): void {
    this.#left -= work;
    if (this.#left < 0) throw new GrammarLoadError("too much work");
  }
}
