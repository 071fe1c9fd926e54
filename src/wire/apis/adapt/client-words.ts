import { isObject } from "../../core/json.ts";

/** Stands in a refusal for the words of the client. No pattern of a refusal matches it. */
const mask = "\u{FFFC}";
/** Between values: no text of letters and digits has it. */
const separator = "\0";

/** This many letters and digits in a row that a value of the client has, too, are the client's. */
const windowLength = 16;
/** The bounds of a whole value that is looked for, in letters and digits. Longer ones are found by their windows. */
const minValue = 3;
const maxValue = 64;
/** The maximum number of words of such a value. */
const maxValueWords = 8;

/**
 * Separates a server's words from those of its client. A refusal may quote the request: whole or cut off, escaped as JSON or HTML, in other
 * cases. So texts are compared by their letters and digits alone, with their escapes read and as they are.
 *
 * What is a client's: a run of 16 letters and digits that one of its values has, unless it is little more than a name, and a whole value.
 * Shorter runs are not: some message of a long conversation has "not supported". The time is linear in the message and the values.
 */
export class ClientWords {
  /** The letters and digits of all values. */
  readonly #values: string;

  /** `body`: the request, as it was sent. */
  constructor(body: unknown) {
    this.#values = clientValues(body)
      .flatMap((value) =>
        /[\\&%]/.test(value) ? [canonical(value), canonical(value, { isPlain: true })] : canonical(value),
      )
      .join(separator);
  }

  /** Replaces the words of the client in a message. */
  masked(message: string): string {
    const covered = new Uint8Array(message.length);
    this.#coverRuns(message, covered, false);
    if (/[\\&%]/.test(message)) this.#coverRuns(message, covered, true);
    this.#coverValues(message, covered);
    let text = "";
    for (let at = 0; at < message.length; at++)
      if (covered[at] === 0) text += message.charAt(at);
      else if (at === 0 || covered[at - 1] === 0) text += mask;
    return text;
  }

  /** Whether a value has these words, in this order: for words that are shorter than a run. */
  has(words: string): boolean {
    return [false, true].some((isPlain) => {
      const text = canonical(words, { isPlain });
      return text.length >= minValue && this.#values.includes(text);
    });
  }

  #coverRuns(message: string, covered: Uint8Array, isPlain: boolean): void {
    const places: number[] = [];
    const text = canonical(message, { places, isPlain });
    const hashes = new Set<number>();
    const placesOf = new Map<string, number[]>();
    forWindows(text, (hash, at) => {
      hashes.add(hash);
      const window = text.slice(at, at + windowLength);
      const same = placesOf.get(window);
      if (same) same.push(at);
      else placesOf.set(window, [at]);
    });
    if (hashes.size === 0) return;
    const isClients = new Uint8Array(text.length);
    forWindows(this.#values, (hash, at) => {
      if (!hashes.has(hash)) return;
      const window = this.#values.slice(at, at + windowLength);
      for (const place of placesOf.get(window) ?? []) isClients.fill(1, place, place + windowLength);
      placesOf.delete(window);
    });
    for (let at = 0; at < text.length; at++) {
      if (isClients[at] === 0) continue;
      const from = places[at] ?? 0;
      while (isClients[at + 1] === 1) at++;
      const to = (places[at] ?? 0) + 1;
      if (saysSomething(message.slice(from, to))) covered.fill(1, from, to);
    }
  }

  #coverValues(message: string, covered: Uint8Array): void {
    const values = new Set(this.#values.split(separator));
    const words = [...message.matchAll(/[\p{L}\p{N}_$-]+/gu)].map(({ 0: word, index }) => ({
      text: canonical(word),
      from: index,
      to: index + word.length,
    }));
    for (const [first, { from }] of words.entries()) {
      let text = "";
      for (const word of words.slice(first, first + maxValueWords)) {
        text += word.text;
        if (text.length > maxValue) break;
        if (text.length >= minValue && values.has(text)) covered.fill(1, from, word.to);
      }
    }
  }
}

/** The least number of letters and digits in a run that are no part of a name such as `max_completion_tokens`, which says nothing. */
const minSaid = 10;

function saysSomething(run: string): boolean {
  const words = run.replace(/\w+/g, (word) => (word.includes("_") ? "" : word));
  return words.length >= minSaid && canonical(words).length >= minSaid && !/^[\w$.-]+$/.test(run);
}

/**
 * The letters and digits of a text in one case, without accents. `places`: gets the place of each in the text. `isPlain`: the text has no
 * escapes.
 */
function canonical(
  text: string,
  { places, isPlain = false }: { readonly places?: number[]; readonly isPlain?: boolean } = {},
): string {
  let plain = "";
  const add = (letters: string, place: number): void => {
    plain += letters;
    if (places) for (let count = letters.length; count > 0; count--) places.push(place);
  };
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (isAsciiWord(code)) {
      const from = at;
      while (isAsciiWord(text.charCodeAt(at))) at++;
      if (places) for (let place = from; place < at; place++) places.push(place);
      plain += text.slice(from, at).toLowerCase();
    } else if (!isPlain && (code === 0x5c || code === 0x26 || code === 0x25)) {
      const { letter, end } = readEscape(text, at);
      add(letter, at);
      at = end;
    } else if (code < 0x80) at++;
    else {
      const point = text.codePointAt(at) ?? 0;
      add(folded(point), at);
      at += point > 0xffff ? 2 : 1;
    }
  }
  return plain;
}

function isAsciiWord(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

/** Of JSON, JavaScript, Python, HTML and URLs. */
const hexEscape = /u([0-9a-f]{4})|x[0-9a-f]{2}/iy;
const entity = /&(?:quot|apos|amp|lt|gt|nbsp|#\d{1,6}|#x[0-9a-f]{1,6});|%[0-9a-f]{2}/iy;

/** Reads what begins with `\`, `&` or `%`. A text that was escaped twice has more backslashes. */
function readEscape(text: string, from: number): { readonly letter: string; readonly end: number } {
  let at = from;
  while (text.charCodeAt(at) === 0x5c) at++;
  const isEscape = at > from;
  const pattern = isEscape ? hexEscape : entity;
  pattern.lastIndex = at;
  const found = pattern.exec(text);
  const code = found?.[1];
  return {
    letter: code === undefined ? "" : folded(Number.parseInt(code, 16)),
    end: found ? at + found[0].length : at + 1,
  };
}

/** Folded characters outside of ASCII, by their code points. */
const foldedPoints = new Map<number, string>();
const maxFolded = 10_000;

function folded(point: number): string {
  let letters = foldedPoints.get(point);
  if (letters === undefined) {
    letters = String.fromCodePoint(point)
      .normalize("NFKD")
      .toUpperCase()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, "");
    if (foldedPoints.size >= maxFolded) foldedPoints.clear();
    foldedPoints.set(point, letters);
  }
  return letters;
}

/** Calls `found` with the hash and the place of each window of a text. */
function forWindows(text: string, found: (hash: number, at: number) => void): void {
  let hash = 0;
  for (let at = 0; at < text.length; at++) {
    hash = (Math.imul(hash, base) + text.charCodeAt(at)) | 0;
    if (at >= windowLength) hash = (hash - Math.imul(text.charCodeAt(at - windowLength), leaving)) | 0;
    if (at >= windowLength - 1) found(hash, at - windowLength + 1);
  }
}

const base = 0x01000193;
/** `base` to the power of the window's length: the factor of the character that leaves a window. */
const leaving = Array.from({ length: windowLength }).reduce<number>((power) => Math.imul(power, base), 1);

/** Words of the API itself, at these members. A refusal names them. */
const apiMembers: ReadonlySet<string> = new Set(["role", "type", "tool_choice", "include"]);
const apiWords: ReadonlySet<string> = new Set([
  "system",
  "developer",
  "user",
  "assistant",
  "tool",
  "function",
  "custom",
  "none",
  "auto",
  "required",
  "text",
  "image_url",
  "file",
  "json_object",
  "json_schema",
  "message",
  "input_text",
  "input_image",
  "output_text",
  "reasoning",
  "reasoning.encrypted_content",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);
/** Objects whose names the client makes up. */
const freeNames: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions", "metadata"]);

/** Every text of a request that its client has chosen: values, and the names in objects with free names, or of an unusual form. */
function clientValues(body: unknown): string[] {
  const values: string[] = [];
  const open: { readonly value: unknown; readonly name: string }[] = [{ value: body, name: "" }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, name } = next;
    if (typeof value === "string") {
      if (!apiMembers.has(name) || !apiWords.has(value)) values.push(value);
    } else if (Array.isArray(value)) for (const one of value) open.push({ value: one, name });
    else if (isObject(value))
      for (const [key, inner] of Object.entries(value)) {
        if (freeNames.has(name) || !/^[\w$.-]{1,64}$/.test(key)) values.push(key);
        open.push({ value: inner, name: key });
      }
  }
  return values;
}
