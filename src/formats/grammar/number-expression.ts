import { codePoints } from "./code-points.ts";
import { decimalsBetween, multiplesBetween } from "./digits.ts";
import { chars, choice, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/** What a schema says of numbers. */
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

/** Digits of a number without a bound: as many as a double holds. The limit makes a model that repeats digits stop. */
const maxDigits = 16;
/** Two decimals of at most this many digits that differ are different doubles, so rounding cannot reach an exclusive bound. */
const exactDigits = 15;

const digit: Expression = chars(codePoints("09"));
const whole: Expression = choice(text("0"), sequence(chars(codePoints("19")), repeat(digit, 0, maxDigits - 1)));
const sign: Expression = optional(text("-"));

/** Any integer of up to 16 digits. */
export const anyInteger: Expression = sequence(sign, whole);

/** Any number: up to 16 digits on each side of the point, an exponent of up to two. */
export const anyNumber: Expression = sequence(
  anyInteger,
  optional(sequence(text("."), repeat(digit, 1, maxDigits))),
  optional(sequence(chars(codePoints("e", "E")), optional(chars(codePoints("+", "-"))), repeat(digit, 1, 2))),
);

/**
 * The numbers within limits. Integers are exact. Other numbers are written without exponent, with as many digits after the point as
 * can be told apart at the size of the bounds; multiples of a decimal with exactly its digits after the point.
 *
 * @returns null where a grammar would be too large (multiples of a large number that is no power of ten).
 */
export function numberExpression(grammar: Grammar, limits: NumberLimits): Expression | null {
  const { integer, low, high, multiples } = limits;
  if (multiples.length > 0) return multipleExpression(grammar, limits);
  if (low === undefined && high === undefined) return integer ? anyInteger : anyNumber;
  const size = Math.max(...[low, high].map((bound) => String(Math.trunc(Math.abs(bound?.value ?? 0))).length));
  const places = integer || size > exactDigits ? 0 : exactDigits - size;
  const [from, to] = scaledRange(limits, places, maxDigits + places);
  return signed(from, to, (a, b) => decimalsBetween(a, b, places));
}

function multipleExpression(grammar: Grammar, limits: NumberLimits): Expression | null {
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

/** The bounds in units of 10^-places, rounded inwards; a missing one is as far as `digits` go, or past the other bound. */
function scaledRange({ low, high }: NumberLimits, places: number, digits: number): readonly [bigint, bigint] {
  const sizes = [low, high].map((bound) => String(decimalOf(Math.trunc(bound?.value ?? 0)).digits).length);
  const far = 10n ** BigInt(Math.max(digits, ...sizes.map((size) => size + places + 1))) - 1n;
  const from = low === undefined ? -far : scaled(low, places, 1n);
  const to = high === undefined ? far : scaled(high, places, -1n);
  return [from, to];
}

/** `inwards` is 1 for a lower bound, -1 for an upper one. */
function scaled({ value, exclusive }: Bound, places: number, inwards: 1n | -1n): bigint {
  // Beyond 2^53 the neighbouring integers are the same double: step to the next double instead.
  const distant = exclusive && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  const decimal = decimalOf(distant ? value + Number(inwards) * Math.abs(value) * Number.EPSILON : value);
  const numerator = decimal.digits * 10n ** BigInt(places);
  const denominator = 10n ** BigInt(decimal.places);
  const quotient = numerator / denominator;
  const exact = quotient * denominator === numerator;
  if (exact) return exclusive && !distant ? quotient + inwards : quotient;
  // Division truncates towards zero: one more where that was outwards.
  const truncatedOutwards = inwards === 1n ? numerator > 0n : numerator < 0n;
  return truncatedOutwards ? quotient + inwards : quotient;
}

function signed(from: bigint, to: bigint, between: (low: bigint, high: bigint) => Expression): Expression {
  const negative = from < 0n ? [sequence(text("-"), between(to < 0n ? -to : 1n, -from))] : [];
  const positive = to >= 0n ? [between(from > 0n ? from : 0n, to)] : [];
  return choice(...positive, ...negative);
}

function signedOrNull(
  [from, to]: readonly [bigint, bigint],
  between: (low: bigint, high: bigint) => Expression | null,
): Expression | null {
  let tooLarge = false;
  const result = signed(from, to, (low, high) => {
    const part = between(low, high);
    tooLarge ||= part === null;
    return part ?? text("");
  });
  return tooLarge ? null : result;
}

/** A number as the decimal that it is written as: digits × 10^-places. */
export function decimalOf(value: number): { readonly digits: bigint; readonly places: number } {
  const [mantissa = "0", exponent = "0"] = String(value).split("e");
  const [before = "0", after = ""] = mantissa.split(".");
  const places = after.length - Number(exponent);
  const digits = BigInt(before + after);
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 };
}

export function leastCommonMultiple(a: bigint, b: bigint): bigint {
  return (a / greatestCommonDivisor(a, b)) * b;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x < 0n ? -x : x;
}
