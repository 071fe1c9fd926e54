import { includesCodePoint, type CodePoints } from "./code-points.ts";
import { parseRegex, RegexError, type RegexNode } from "./regex-syntax.ts";

/** Maximum number of steps after unrolling repetitions. */
const maxSteps = 10_000;

/** A step of the automaton: read a character, continue at one of two steps, or continue only at the start or end of the text. */
type Step =
  | { readonly kind: "chars"; readonly set: CodePoints; readonly next: number }
  | { readonly kind: "either"; readonly next: number; readonly other: number }
  | { readonly kind: "start" | "end"; readonly next: number }
  | { readonly kind: "match" };

/**
 * Decides whether a pattern matches anywhere in a text, as JSON Schema's `pattern` requires. It follows all alternatives in parallel
 * (Thompson 1968) without backtracking, so the work is at most the length of the text times that of the pattern. A client chooses both, and
 * JavaScript's `RegExp` may take years for `^(a+)+$`.
 */
export class RegexMatcher {
  readonly pattern: string;
  readonly #steps: Step[] = [];
  readonly #first: number;

  /** @throws {RegexError} for a pattern that is malformed, not supported, or too large. */
  constructor(pattern: string) {
    this.pattern = pattern;
    this.#first = this.#compile(parseRegex(pattern), this.#add({ kind: "match" }));
  }

  /**
   * Whether the pattern matches anywhere in the text, like `RegExp.test` with the `u` flag. `spend` is called with the work of each step,
   * and may throw.
   */
  test(text: string, spend?: (work: number) => void): boolean {
    const seen = new Uint32Array(this.#steps.length);
    let open: number[] = [];
    for (let at = 0, round = 1; ; round++) {
      // A match may begin at every position.
      open.push(this.#first);
      const reading: number[] = [];
      let work = 1;
      for (let place = open.pop(); place !== undefined; place = open.pop()) {
        if (seen[place] === round) continue;
        seen[place] = round;
        const step = this.#steps[place];
        if (step === undefined) continue;
        work++;
        if (step.kind === "match") return true;
        if (step.kind === "chars") reading.push(place);
        else if (step.kind === "either") open.push(step.next, step.other);
        else if (step.kind === "start" ? at === 0 : at === text.length) open.push(step.next);
      }
      spend?.(work);
      if (at === text.length) return false;
      const value = text.codePointAt(at) ?? 0;
      for (const place of reading) {
        const step = this.#steps[place];
        if (step?.kind === "chars" && includesCodePoint(step.set, value)) open.push(step.next);
      }
      at += value > 0xffff ? 2 : 1;
    }
  }

  toString(): string {
    return this.pattern;
  }

  #add(step: Step): number {
    if (this.#steps.length >= maxSteps) throw new RegexError(`the pattern needs more than ${maxSteps} steps`);
    return this.#steps.push(step) - 1;
  }

  /** The step at which `node` begins, if what follows it begins at `next`. */
  #compile(node: RegexNode, next: number): number {
    switch (node.kind) {
      case "chars":
        return this.#add({ kind: "chars", set: node.set, next });
      case "start":
      case "end":
        return this.#add({ kind: node.kind, next });
      case "sequence":
        return node.items.reduceRight((after, item) => this.#compile(item, after), next);
      case "choice":
        return node.options
          .map((option) => this.#compile(option, next))
          .reduceRight((other, option) => this.#add({ kind: "either", next: option, other }));
      case "repeat":
        return this.#repeat(node, next);
    }
  }

  #repeat({ item, min, max }: RegexNode & { kind: "repeat" }, next: number): number {
    let place = next;
    if (max === null) {
      // The loop needs a step of its own before its item can be compiled.
      const loop = this.#add({ kind: "either", next, other: next });
      this.#steps[loop] = { kind: "either", next: this.#compile(item, loop), other: next };
      place = loop;
    } else {
      for (let i = min; i < max; i++) {
        place = this.#add({ kind: "either", next: this.#compile(item, place), other: next });
      }
    }
    for (let i = 0; i < min; i++) {
      const begins = this.#compile(item, place);
      // An item that matches no character need not be repeated.
      if (begins === place) break;
      place = begins;
    }
    return place;
  }
}

/** The patterns of one schema, each compiled once. */
export class PatternSet {
  readonly #matchers = new Map<string, RegexMatcher | null>();
  readonly #spend: (work: number) => void;

  constructor(spend: (work: number) => void) {
    this.#spend = spend;
  }

  /** Whether a pattern matches anywhere in a text. null if it is malformed or not supported (look-around, for example). */
  matches(pattern: string, text: string): boolean | null {
    let matcher = this.#matchers.get(pattern);
    if (matcher === undefined) {
      this.#spend(pattern.length);
      this.#matchers.set(pattern, (matcher = compiled(pattern)));
    }
    return matcher && matcher.test(text, this.#spend);
  }
}

function compiled(pattern: string): RegexMatcher | null {
  try {
    return new RegexMatcher(pattern);
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}
