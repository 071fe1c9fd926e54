import { invalidRequest } from "../../../wire/core/failure.ts";
import type { Steps } from "../../../wire/core/steps.ts";
import type { SearchedPlace, SearchHit, SearchResult } from "../../../judge/inspect/inspected-request.ts";

/** One text of a request. */
export interface SearchableText {
  readonly place: SearchedPlace;
  readonly text: string;
  /** The text is JSON, or has JSON in its lines: escapes such as `\n` and `\u00e9` are replaced before the search. */
  readonly isJson?: boolean;
}

/** A request whose texts are searched. An undefined step is work without a text yet. */
export interface Searchable {
  readonly id: string;
  texts(): Iterable<SearchableText | undefined>;
}

/** Of a query, in characters. */
const maxQueryLength = 200;
/** Number of characters that are searched in one step. */
const stepLength = 32 * 1024;
/** Number of characters that are shown before and after a match. */
const before = 40;
const after = 120;
/** The number of texts of one request that are shown. */
const maxHits = 3;

/** Words of a query. A request is found if its texts have all of them, in any order and in upper or lower case. */
export type SearchedWords = readonly RegExp[];

/** Splits a query at spaces; words in double quotes stay together. Throws `FailureError` 400 for a query that is empty or too long. */
export function wordsOf(query: string): SearchedWords {
  if (query.length > maxQueryLength)
    throw invalidRequest(
      `'q' is too long: expected at most ${maxQueryLength} characters, but got ${query.length}.`,
      "q",
    );
  const words = [...query.matchAll(/"([^"]+)"|[^\s"]+/g)].map(([word, quoted]) => quoted ?? word);
  if (words.length === 0)
    throw invalidRequest(
      "Missing words to search for: expected 'q', such as ?q=weather.",
      "q",
      "missing_required_parameter",
    );
  return [...new Set(words)].map((word) => new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu"));
}

/** Searches one request. Each step takes at most a few milliseconds. */
export function* searchRequest(request: Searchable, words: SearchedWords): Steps<SearchResult | undefined> {
  const missing = new Set(words);
  const hits: SearchHit[] = [];
  for (const text of request.texts()) {
    yield;
    if (!text) continue;
    const hit = yield* firstHit(text, words, missing);
    if (hit && hits.length < maxHits) hits.push(hit);
    if (missing.size === 0 && hits.length === maxHits) break;
  }
  return missing.size === 0 ? { id: request.id, hits } : undefined;
}

/** The first match of any word. Removes the words that the text has from those that are missing. */
function* firstHit(
  { place, text, isJson = false }: SearchableText,
  words: SearchedWords,
  missing: Set<RegExp>,
): Steps<SearchHit | undefined> {
  let hit: SearchHit | undefined;
  for (let from = 0; from < text.length; from += stepLength) {
    yield;
    // Steps overlap, so that a match at their border is found with what is around it.
    const part = text.slice(Math.max(0, from - maxQueryLength - before), from + stepLength + after);
    const plain = isJson ? unescaped(part) : part;
    for (const word of words) {
      if (hit && !missing.has(word)) continue;
      const match = word.exec(plain);
      word.lastIndex = 0;
      if (!match) continue;
      missing.delete(word);
      hit ??= { place, ...shownAt(plain, match.index, words) };
    }
    if (hit && missing.size === 0) return hit;
  }
  return hit;
}

/** The text around a position, in one line, with the ranges of the words in it. */
function shownAt(text: string, at: number, words: SearchedWords): Omit<SearchHit, "place"> {
  const from = Math.max(0, at - before);
  const to = Math.min(text.length, at + after);
  const line = `${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`.replace(/\s+/g, " ");
  const marks = words
    .flatMap((word) => [...line.matchAll(word)])
    .map(({ index, 0: { length } }): [number, number] => [index, index + length])
    .sort(([a], [b]) => a - b);
  // Words may overlap: "error" and "err".
  const apart: [number, number][] = [];
  for (const [start, end] of marks) {
    const last = apart.at(-1);
    if (last && start < last[1]) last[1] = Math.max(last[1], end);
    else apart.push([start, end]);
  }
  return { text: line, marks: apart };
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

/** Replaces the escapes of JSON strings. An escape that is cut at an end of the text stays as it is. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:u([0-9a-f]{4})|(["\\/bfnrt]))/gi, (_, code: string | undefined, char: string | undefined) =>
    code === undefined ? (escapes[char ?? ""] ?? char ?? "") : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
