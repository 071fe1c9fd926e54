import { codePoints, type CodePoints } from "./code-points.ts";
import {
  chars,
  choice,
  empty,
  type GrammarExpression,
  never,
  optional,
  repeat,
  sequence,
  literal,
} from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/** The constraints of a schema on numbers. */
export interface NumberLimits {
  readonly integer: boolean;
  readonly low?: Bound;
  readonly high?: Bound;
  readonly multiples: readonly number[];
}

export interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

/** Digits of an unbounded number: the precision of a double. The limit stops a model that repeats digits. */
const maxDigits = 16;
/** Two different decimals with at most this number of digits are different doubles, so rounding cannot reach an exclusive bound. */
const exactDigits = 15;

const digit: GrammarExpression = chars(codePoints("09"));
const whole: GrammarExpression = choice(
  literal("0"),
  sequence(chars(codePoints("19")), repeat(digit, 0, maxDigits - 1)),
);
const sign: GrammarExpression = optional(literal("-"));

/** Any integer of up to 16 digits. */
const anyInteger: GrammarExpression = sequence(sign, whole);

/** Any number: up to 16 digits on each side of the point, and an exponent of up to two digits. */
export const anyNumber: GrammarExpression = sequence(
  anyInteger,
  optional(sequence(literal("."), repeat(digit, 1, maxDigits))),
  optional(sequence(chars(codePoints("e", "E")), optional(chars(codePoints("+", "-"))), repeat(digit, 1, 2))),
);

/**
 * The numbers within limits. Integers are exact. Other numbers have no exponent and at most as many digits after the point as a double
 * distinguishes at the size of the bounds; multiples of a decimal have exactly its digits after the point.
 *
 * @returns null if a grammar would be too large (multiples of a large number that is not a power of ten).
 */
export function numberExpression(grammar: Grammar, limits: NumberLimits): GrammarExpression | null {
  const { integer, low, high, multiples } = limits;
  if (multiples.length > 0) return multipleExpression(grammar, limits);
  if (low === undefined && high === undefined) return integer ? anyInteger : anyNumber;
  const size = Math.max(...[low, high].map((bound) => String(Math.trunc(Math.abs(bound?.value ?? 0))).length));
  const places = integer || size > exactDigits ? 0 : exactDigits - size;
  const [from, to] = scaledRange(limits, places, maxDigits + places);
  return signed(from, to, (a, b) => decimalsBetween(a, b, places));
}

function multipleExpression(grammar: Grammar, limits: NumberLimits): GrammarExpression | null {
  const decimals = limits.multiples.map(decimalOf);
  const places = Math.max(...decimals.map((decimal) => decimal.places));
  const unit = 10n ** BigInt(places);
  const step = decimals.map((d) => d.digits * 10n ** BigInt(places - d.places)).reduce(leastCommonMultiple);
  if (step === 0n) return null;
  // As integers: i × 10^places is a multiple of step.
  const wholes = signedOrNull(scaledRange(limits, 0, exactDigits), (low, high) =>
    multiplesBetween(grammar, { low, high, step: step / greatestCommonDivisor(step, unit), places: 0 }),
  );
  if (limits.integer || places === 0 || wholes === null) return wholes;
  const fractions = signedOrNull(scaledRange(limits, places, exactDigits), (low, high) =>
    multiplesBetween(grammar, { low, high, step, places }),
  );
  return fractions && choice(wholes, fractions);
}

/**
 * The bounds in units of 10^-places, rounded inwards. A missing bound is replaced by the largest number of `digits` digits, or one beyond
 * the other bound.
 */
function scaledRange({ low, high }: NumberLimits, places: number, digits: number): readonly [bigint, bigint] {
  const sizes = [low, high].map((bound) => String(decimalOf(Math.trunc(bound?.value ?? 0)).digits).length);
  const far = 10n ** BigInt(Math.max(digits, ...sizes.map((size) => size + places + 1))) - 1n;
  const from = low === undefined ? -far : scaled(low, places, 1n);
  const to = high === undefined ? far : scaled(high, places, -1n);
  return [from, to];
}

/** `inwards` is 1 for a lower bound, -1 for an upper one. */
function scaled({ value, exclusive }: Bound, places: number, inwards: 1n | -1n): bigint {
  // Beyond 2^53 the neighboring integers are the same double: step to the next double instead.
  const distant = exclusive && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  const decimal = decimalOf(distant ? value + Number(inwards) * Math.abs(value) * Number.EPSILON : value);
  const numerator = decimal.digits * 10n ** BigInt(places);
  const denominator = 10n ** BigInt(decimal.places);
  const quotient = numerator / denominator;
  const exact = quotient * denominator === numerator;
  if (exact) return exclusive && !distant ? quotient + inwards : quotient;
  // Division truncates towards zero: correct by one if that was outwards.
  const truncatedOutwards = inwards === 1n ? numerator > 0n : numerator < 0n;
  return truncatedOutwards ? quotient + inwards : quotient;
}

function signed(
  from: bigint,
  to: bigint,
  between: (low: bigint, high: bigint) => GrammarExpression,
): GrammarExpression {
  const negative = from < 0n ? [sequence(literal("-"), between(to < 0n ? -to : 1n, -from))] : [];
  const positive = to >= 0n ? [between(from > 0n ? from : 0n, to)] : [];
  return choice(...positive, ...negative);
}

function signedOrNull(
  [from, to]: readonly [bigint, bigint],
  between: (low: bigint, high: bigint) => GrammarExpression | null,
): GrammarExpression | null {
  let tooLarge = false;
  const result = signed(from, to, (low, high) => {
    const part = between(low, high);
    tooLarge ||= part === null;
    return part ?? literal("");
  });
  return tooLarge ? null : result;
}

/** A number as a decimal: digits × 10^-places. */
export function decimalOf(value: number): { readonly digits: bigint; readonly places: number } {
  const [mantissa = "0", exponent = "0"] = String(value).split("e");
  const [before = "0", after = ""] = mantissa.split(".");
  const places = after.length - Number(exponent);
  const digits = BigInt(before + after);
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 };
}

function leastCommonMultiple(a: bigint, b: bigint): bigint {
  return (a / greatestCommonDivisor(a, b)) * b;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x < 0n ? -x : x;
}

const anyDigit: GrammarExpression = chars(codePoints("09"));
const firstDigit: GrammarExpression = chars(codePoints("19"));

/** Up to this number, multiples are listed one by one; beyond it, they are counted by an automaton. */
const maxListed = 64n;
const maxStates = 2_000;

/** Integers from `low` to `high` (not negative), without leading zeros. */
function wholeBetween(low: bigint, high: bigint): GrammarExpression {
  if (low > high) return never;
  const options: GrammarExpression[] = [];
  const [shortest, longest] = [length(low), length(high)];
  for (let size = shortest; size <= longest; size++) {
    const from = size === shortest ? low : 10n ** BigInt(size - 1);
    const to = size === longest ? high : 10n ** BigInt(size) - 1n;
    // Lengths at which every number is included are combined: [1-9][0-9]{a,b}.
    if (size > shortest && size < longest) continue;
    options.push(digitsBetween(String(from), String(to), false));
  }
  if (longest - shortest > 1) options.splice(1, 0, sequence(firstDigit, repeat(anyDigit, shortest, longest - 2)));
  return choice(...options);
}

/**
 * Digit strings of the same length between `low` and `high`, in lexical order. With `fraction`, all but the first digit may be missing, and
 * a missing digit is zero.
 */
function digitsBetween(low: string, high: string, fraction: boolean, first = true): GrammarExpression {
  if (low === "") return empty;
  const isFromZero = /^0*$/.test(low);
  if (!fraction && isFromZero && /^9*$/.test(high)) return repeat(anyDigit, low.length, low.length);
  const size = low.length - 1;
  const [lowRest, highRest, zeros, nines] = [low.slice(1), high.slice(1), "0".repeat(size), "9".repeat(size)];
  let [from, to] = [Number(low[0]), Number(high[0])];
  const digitThen = (digit: number, restLow: string, restHigh: string): GrammarExpression =>
    sequence(literal(String(digit)), digitsBetween(restLow, restHigh, fraction, false));
  const options: GrammarExpression[] = [];
  if (from === to) options.push(digitThen(from, lowRest, highRest));
  else {
    // After the first and last digit the rest is bounded; after a digit between them it is free.
    if (lowRest !== zeros) options.push(digitThen(from++, lowRest, nines));
    const upper = highRest === nines ? [] : [digitThen(to--, zeros, highRest)];
    const free = repeat(anyDigit, fraction ? 0 : size, size);
    if (from <= to) options.push(sequence(chars(digitRange(from, to)), free));
    options.push(...upper);
  }
  return fraction && !first && isFromZero ? optional(choice(...options)) : choice(...options);
}

/** Decimal numbers from `low` to `high` (not negative), both in units of 10^-places, with at most `places` digits after the point. */
function decimalsBetween(low: bigint, high: bigint, places: number): GrammarExpression {
  if (places === 0) return wholeBetween(low, high);
  if (low > high) return never;
  const unit = 10n ** BigInt(places);
  const [lowWhole, highWhole] = [low / unit, high / unit];
  const lowRest = String(low % unit).padStart(places, "0");
  const highRest = String(high % unit).padStart(places, "0");
  const nines = "9".repeat(places);
  if (lowWhole === highWhole) return sequence(literal(String(lowWhole)), fraction(lowRest, highRest));
  return choice(
    sequence(literal(String(lowWhole)), fraction(lowRest, nines)),
    sequence(
      wholeBetween(lowWhole + 1n, highWhole - 1n),
      optional(sequence(literal("."), repeat(anyDigit, 1, places))),
    ),
    sequence(literal(String(highWhole)), fraction("0".repeat(places), highRest)),
  );
}

/** The fraction after the integer part, between `low` and `high`. It is optional if the range includes zero. */
function fraction(low: string, high: string): GrammarExpression {
  const digits = sequence(literal("."), digitsBetween(low, high, true));
  return /^0*$/.test(low) ? optional(digits) : digits;
}

/**
 * Multiples of `step` from `low` to `high` (not negative), in units of 10^-places, with exactly `places` digits after the point.
 *
 * @returns null if a grammar would be too large.
 */
function multiplesBetween(
  grammar: Grammar,
  { low, high, step, places }: { low: bigint; high: bigint; step: bigint; places: number },
): GrammarExpression | null {
  if (step === 1n && places === 0) return wholeBetween(low, high);
  const first = ((low + step - 1n) / step) * step;
  if (first > high) return never;
  if ((high - first) / step < maxListed) {
    const values: GrammarExpression[] = [];
    for (let value = first; value <= high; value += step) values.push(literal(withPoint(value, places)));
    return choice(...values);
  }
  if (places === 0 && step % 10n === 0n) {
    const tenth = multiplesBetween(grammar, { low: (low + 9n) / 10n, high: high / 10n, step: step / 10n, places });
    if (tenth === null || low > 0n) return tenth && sequence(tenth, literal("0"));
    const positive = multiplesBetween(grammar, { low: 1n, high: high / 10n, step: step / 10n, places });
    return positive && choice(literal("0"), sequence(positive, literal("0")));
  }
  const sizes = length(high) - length(first) + 1;
  if (step > BigInt(maxStates) || Number(step) * Math.max(sizes, length(high)) > maxStates) return null;
  return countedMultiples(grammar, { low, high, step: Number(step), places });
}

/** An automaton that reads a number digit by digit; its state is the remainder and whether the digits so far are those of a bound. */
function countedMultiples(
  grammar: Grammar,
  { low, high, step, places }: { low: bigint; high: bigint; step: number; places: number },
): GrammarExpression {
  /** Digit strings between two of the same length that lead from `remainder` to remainder 0. */
  const from = (first: string, last: string, remainder: number): GrammarExpression => {
    if (first === "") return remainder === 0 ? empty : never;
    return grammar.shared(`multiple ${step} ${places} ${first} ${last} ${remainder}`, "multiple", () => {
      const rest = first.length - 1;
      const point = rest + 1 === places ? literal(".") : empty;
      const options: GrammarExpression[] = [];
      for (let digit = Number(first[0]); digit <= Number(last[0]); digit++) {
        const firstRest = digit === Number(first[0]) ? first.slice(1) : "0".repeat(rest);
        const lastRest = digit === Number(last[0]) ? last.slice(1) : "9".repeat(rest);
        const next = from(firstRest, lastRest, (remainder * 10 + digit) % step);
        options.push(sequence(point, literal(String(digit)), next));
      }
      return choice(...options);
    });
  };
  const shortest = Math.max(length(low), places + 1);
  const longest = Math.max(length(high), places + 1);
  const options: GrammarExpression[] = [];
  for (let size = shortest; size <= longest; size++) {
    const first = size === shortest ? String(low) : String(10n ** BigInt(size - 1));
    const last = size === longest ? String(high) : "9".repeat(size);
    options.push(from(first.padStart(size, "0"), last.padStart(size, "0"), 0));
  }
  return choice(...options);
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
