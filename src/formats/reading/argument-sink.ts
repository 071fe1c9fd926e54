/** Where the JSON of arguments goes, in pieces. */
export interface ArgumentSink {
  /** JSON that stands for this raw text, which was taken from the cursor. */
  write(json: string, raw: string): void;
  /** JSON that stands for all that was passed and not accounted for. */
  json(text: string): void;
  /** Of that, all but the last `kept` characters, as content of a JSON string. */
  characters(kept: number): void;
}

/** Text as it stands inside a JSON string. Surrogates stay as they are: a pair may be split over two pieces. */
export function escapeCharacters(text: string): string {
  return mustEscape.test(text) ? text.replace(everyMustEscape, (found) => JSON.stringify(found).slice(1, -1)) : text;
}

// oxlint-disable-next-line no-control-regex -- JSON forbids exactly these
const mustEscape = /["\\\u0000-\u001f]/;
// oxlint-disable-next-line no-control-regex
const everyMustEscape = /["\\\u0000-\u001f]/g;
