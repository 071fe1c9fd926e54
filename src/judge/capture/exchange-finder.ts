import type { CapturedExchange } from "./captured-exchange.ts";
import { maskedPath } from "./captured-exchange.ts";
import { isObject } from "../../wire/core/json.ts";

/** The longest part of a value that a message shows, in characters. */
const shownLength = 80;

export interface AskedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: string;
}

/**
 * Finds the answer to a request among captures. Bodies are compared as JSON: the order of members does not matter, and headers are not
 * compared. Where the same request was captured several times, its answers come in that order, and the last one from then on.
 */
export class ExchangeFinder {
  readonly #captures: readonly (CapturedExchange & { readonly json: unknown })[];
  readonly #used = new Set<CapturedExchange>();

  constructor(captures: readonly CapturedExchange[]) {
    this.#captures = captures.map((capture) => ({ ...capture, json: jsonOf(capture.request.body ?? "") }));
  }

  /** The capture that answers the request, or a sentence that says why there is none. */
  find(asked: AskedRequest): CapturedExchange | string {
    const body = jsonOf(asked.body);
    const ofPath = this.#captures.filter(
      ({ request }) => request.method === asked.method && samePath(request.path, asked.path),
    );
    const same = ofPath.filter(({ request, json }) => request.body === undefined || !jsonDifference(json, body));
    // What says its body goes before what takes any.
    const exact = same.filter(({ request }) => request.body !== undefined);
    const [first, ...rest] = exact.length > 0 ? exact : same;
    if (!first) return this.#why(asked, ofPath, body);
    const next = [first, ...rest].find((capture) => !this.#used.has(capture)) ?? rest.at(-1) ?? first;
    this.#used.add(next);
    return next;
  }

  #why(
    { method, path }: AskedRequest,
    ofPath: readonly (CapturedExchange & { readonly json: unknown })[],
    body: unknown,
  ): string {
    let nearest = ofPath[0];
    let most = -1;
    for (const capture of ofPath) {
      const common = commonValues(capture.json, body);
      if (common <= most) continue;
      most = common;
      nearest = capture;
    }
    if (!nearest) {
      const known = [...new Set(this.#captures.map(({ request }) => `${request.method} ${request.path}`))].join(", ");
      return `No capture has ${method} ${path}. The captures have: ${known}.`;
    }
    const difference = jsonDifference(nearest.json, body);
    const place = difference?.path === "" ? "its body" : difference?.path;
    return `No capture has this request. The nearest one (${nearest.from}) differs at ${place}: expected ${shown(difference?.expected)}, received ${shown(difference?.actual)}.`;
  }
}

/** With and without `/v1` before it: a base URL may have it or not. */
function samePath(one: string, other: string): boolean {
  const plain = (path: string): string => maskedPath(path).replace(/^\/v1(?=\/)/, "");
  return plain(one) === plain(other);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length <= shownLength ? text : `${text.slice(0, shownLength)}…`;
}

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
