import { codePoints, type CodePoints } from "./code-points.ts";
import { chars, choice, empty, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

const anyDigit: Expression = chars(codePoints("09"));
const firstDigit: Expression = chars(codePoints("19"));

/** Multiples are listed one by one up to so many, and beyond that counted by an automaton of at most so many states. */
const maxListed = 64n;
const maxStates = 2_000;

/**
 * Whole numbers from `low` to `high` (not negative), without leading zeros.
 */
export function wholeBetween(low: bigint, high: bigint): Expression {
  if (low > high) return never;
  const options: Expression[] = [];
  const [shortest, longest] = [length(low), length(high)];
  for (let size = shortest; size <= longest; size++) {
    const from = size === shortest ? low : 10n ** BigInt(size - 1);
    const to = size === longest ? high : 10n ** BigInt(size) - 1n;
    // Lengths at which every number counts go together: [1-9][0-9]{a,b}.
    if (size > shortest && size < longest) continue;
    options.push(fixedBetween(String(from), String(to)));
  }
  if (longest - shortest > 1) options.splice(1, 0, sequence(firstDigit, repeat(anyDigit, shortest, longest - 2)));
  return choice(...options);
}

/** Digit strings of one length, from `low` to `high` in the order of their text. */
function fixedBetween(low: string, high: string): Expression {
  if (low === "") return empty;
  if (/^0*$/.test(low) && /^9*$/.test(high)) return repeat(anyDigit, low.length, low.length);
  const [first, last] = [Number(low[0]), Number(high[0])];
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  const [zeros, nines] = ["0".repeat(lowRest.length), "9".repeat(lowRest.length)];
  if (first === last) return sequence(text(String(first)), fixedBetween(lowRest, highRest));
  // The edges, where the rest is bound, and between them the digits after which it is free.
  const options: Expression[] = [];
  let [from, to] = [first, last];
  if (lowRest !== zeros) {
    options.push(sequence(text(String(first)), fixedBetween(lowRest, nines)));
    from++;
  }
  const upper = highRest === nines ? [] : [sequence(text(String(last)), fixedBetween(zeros, highRest))];
  if (upper.length > 0) to--;
  if (from <= to) options.push(sequence(chars(digitRange(from, to)), repeat(anyDigit, zeros.length, zeros.length)));
  return choice(...options, ...upper);
}

/**
 * Decimal numbers from `low` to `high` (not negative), both in units of 10^-places, with at most `places` digits after the point.
 */
export function decimalsBetween(low: bigint, high: bigint, places: number): Expression {
  if (places === 0) return wholeBetween(low, high);
  if (low > high) return never;
  const unit = 10n ** BigInt(places);
  const [lowWhole, highWhole] = [low / unit, high / unit];
  const lowRest = String(low % unit).padStart(places, "0");
  const highRest = String(high % unit).padStart(places, "0");
  const nines = "9".repeat(places);
  if (lowWhole === highWhole) return sequence(text(String(lowWhole)), fraction(lowRest, highRest));
  return choice(
    sequence(text(String(lowWhole)), fraction(lowRest, nines)),
    sequence(wholeBetween(lowWhole + 1n, highWhole - 1n), optional(sequence(text("."), repeat(anyDigit, 1, places)))),
    sequence(text(String(highWhole)), fraction("0".repeat(places), highRest)),
  );
}

/** What may follow the whole part: a fraction between the two; the point may be missing where zero is among them. */
function fraction(low: string, high: string): Expression {
  const digits = sequence(text("."), fractionDigits(low, high, true));
  return /^0*$/.test(low) ? optional(digits) : digits;
}

/** Digits that may stop early: what is missing counts as zero. */
function fractionDigits(low: string, high: string, first: boolean): Expression {
  if (low === "") return empty;
  const mayStop = !first && /^0*$/.test(low);
  const [zeros, nines] = ["0".repeat(low.length - 1), "9".repeat(low.length - 1)];
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  let [from, to] = [Number(low[0]), Number(high[0])];
  const options: Expression[] = [];
  if (from === to) options.push(sequence(text(String(from)), fractionDigits(lowRest, highRest, false)));
  else {
    // The edges, where the rest is bound, and between them the digits after which it is free.
    if (lowRest !== zeros) {
      options.push(sequence(text(String(from)), fractionDigits(lowRest, nines, false)));
      from++;
    }
    const upper = highRest === nines ? [] : [sequence(text(String(to)), fractionDigits(zeros, highRest, false))];
    if (upper.length > 0) to--;
    if (from <= to) options.push(sequence(chars(digitRange(from, to)), repeat(anyDigit, 0, zeros.length)));
    options.push(...upper);
  }
  return mayStop ? optional(choice(...options)) : choice(...options);
}

/**
 * Multiples of `step` from `low` to `high` (not negative), in units of 10^-places, with exactly `places` digits after the point.
 *
 * @returns null where a grammar for it would be too large.
 */
export function multiplesBetween(
  grammar: Grammar,
  { low, high, step, places }: { low: bigint; high: bigint; step: bigint; places: number },
): Expression | null {
  if (step === 1n && places === 0) return wholeBetween(low, high);
  const first = ((low + step - 1n) / step) * step;
  if (first > high) return never;
  if ((high - first) / step < maxListed) {
    const values: Expression[] = [];
    for (let value = first; value <= high; value += step) values.push(text(withPoint(value, places)));
    return choice(...values);
  }
  if (places === 0 && step % 10n === 0n) {
    const tenth = multiplesBetween(grammar, { low: (low + 9n) / 10n, high: high / 10n, step: step / 10n, places });
    if (tenth === null || low > 0n) return tenth && sequence(tenth, text("0"));
    const positive = multiplesBetween(grammar, { low: 1n, high: high / 10n, step: step / 10n, places });
    return positive && choice(text("0"), sequence(positive, text("0")));
  }
  const sizes = length(high) - length(first) + 1;
  if (step > BigInt(maxStates) || Number(step) * Math.max(sizes, length(high)) > maxStates) return null;
  return new Multiples(grammar, Number(step), places).between(low, high);
}

/** The automaton that reads a number digit by digit and remembers its remainder, and whether it is still at an edge. */
class Multiples {
  readonly #grammar: Grammar;
  readonly #step: number;
  readonly #places: number;
  readonly #key: string;

  constructor(grammar: Grammar, step: number, places: number) {
    this.#grammar = grammar;
    this.#step = step;
    this.#places = places;
    this.#key = `multiple ${step} ${places}`;
  }

  between(low: bigint, high: bigint): Expression {
    const shortest = Math.max(length(low), this.#places + 1);
    const longest = Math.max(length(high), this.#places + 1);
    const options: Expression[] = [];
    for (let size = shortest; size <= longest; size++) {
      const from = size === shortest ? String(low) : String(10n ** BigInt(size - 1));
      const to = size === longest ? String(high) : "9".repeat(size);
      options.push(this.#from(from.padStart(size, "0"), to.padStart(size, "0"), 0));
    }
    return choice(...options);
  }

  /** Digit strings from `low` to `high` (of one length) that, after a remainder, end at remainder 0. */
  #from(low: string, high: string, remainder: number): Expression {
    if (low === "") return remainder === 0 ? empty : never;
    return this.#grammar.shared(`${this.#key} ${low} ${high} ${remainder}`, "multiple", () => {
      const rest = low.length - 1;
      const point = rest + 1 === this.#places ? text(".") : empty;
      const options: Expression[] = [];
      for (let digit = Number(low[0]); digit <= Number(high[0]); digit++) {
        const lowRest = digit === Number(low[0]) ? low.slice(1) : "0".repeat(rest);
        const highRest = digit === Number(high[0]) ? high.slice(1) : "9".repeat(rest);
        const next = this.#from(lowRest, highRest, (remainder * 10 + digit) % this.#step);
        options.push(sequence(point, text(String(digit)), next));
      }
      return choice(...options);
    });
  }
}

function digitRange(from: number, to: number): CodePoints {
  return codePoints(`${from}${to}`);
}

function withPoint(value: bigint, places: number): string {
  if (places === 0) return String(value);
  const digits = String(value).padStart(places + 1, "0");
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

function length(value: bigint): number {
  return String(value).length;
}
