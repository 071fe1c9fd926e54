/**
 * Sets of Unicode code points as sorted, disjoint, inclusive ranges. Surrogates are never members: UTF-8 cannot encode them, but
 * llama.cpp's matcher would accept their bytes as characters.
 */
export type CodePoints = readonly (readonly [first: number, last: number])[];

/** Every character that UTF-8 can encode. */
export const everyCodePoint: CodePoints = [
  [0, 0xd7ff],
  [0xe000, 0x10ffff],
];

/** The characters in ranges, each given by its first and last character: `codePoints("az", "09")` is `[a-z0-9]`. */
export function codePoints(...pairs: readonly string[]): CodePoints {
  return normalize(
    pairs.map((pair) => {
      const ends = [...pair].map(codePointOf);
      return [ends[0] ?? 0, ends.at(-1) ?? 0] as const;
    }),
  );
}

/** The set of one character. */
export function oneCodePoint(character: string): CodePoints {
  const value = codePointOf(character);
  return [[value, value]];
}

export function union(...sets: readonly CodePoints[]): CodePoints {
  return normalize(sets.flat());
}

export function complement(set: CodePoints): CodePoints {
  return subtract(everyCodePoint, set);
}

export function intersection(a: CodePoints, b: CodePoints): CodePoints {
  const result: [number, number][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const [aFirst, aLast] = a[i] ?? [0, -1];
    const [bFirst, bLast] = b[j] ?? [0, -1];
    const first = Math.max(aFirst, bFirst);
    const last = Math.min(aLast, bLast);
    if (first <= last) result.push([first, last]);
    if (aLast < bLast) i++;
    else j++;
  }
  return result;
}

export function subtract(a: CodePoints, b: CodePoints): CodePoints {
  const gaps: [number, number][] = [];
  let next = 0;
  for (const [first, last] of b) {
    if (first > next) gaps.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  gaps.push([next, 0x10ffff]);
  return intersection(a, gaps);
}

export function includesCodePoint(set: CodePoints, codePoint: number): boolean {
  let [low, high] = [0, set.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [first, last] = set[middle] ?? [0, -1];
    if (codePoint < first) high = middle - 1;
    else if (codePoint > last) low = middle + 1;
    else return true;
  }
  return false;
}

export function codePointOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

function normalize(ranges: CodePoints): CodePoints {
  const sorted = ranges.filter(([first, last]) => first <= last).sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [first, last] of sorted) {
    const previous = merged.at(-1);
    if (previous !== undefined && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last);
    else merged.push([first, last]);
  }
  return intersection(merged, everyCodePoint);
}
