import { isObject } from "../core/json.ts";

export interface Difference {
  /** `messages[1].content`; "" for the whole. */
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** The first place where two JSON values differ, in the order of the expected one; null when they are equal. Members have no order. */
export function jsonDifference(expected: unknown, actual: unknown, path = ""): Difference | null {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    for (let at = 0; at < Math.max(expected.length, actual.length); at++) {
      const found = jsonDifference(expected[at], actual[at], `${path}[${at}]`);
      if (found) return found;
    }
    return null;
  }
  if (isObject(expected) && isObject(actual)) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      const found = jsonDifference(expected[name], actual[name], path === "" ? name : `${path}.${name}`);
      if (found) return found;
    }
    return null;
  }
  return Object.is(expected, actual) ? null : { path, expected, actual };
}

/** How many values of the expected one are in the actual one, at the same place: the more, the nearer. */
export function commonValues(expected: unknown, actual: unknown): number {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    return expected.reduce((sum: number, item, at) => sum + commonValues(item, actual[at]), 0);
  }
  if (isObject(expected) && isObject(actual)) {
    return Object.keys(expected).reduce((sum, name) => sum + commonValues(expected[name], actual[name]), 0);
  }
  return Object.is(expected, actual) ? 1 : 0;
}
