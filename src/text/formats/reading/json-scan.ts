/**
 * Finds the end of a JSON value, or the first character that cannot belong to it, in text that arrives in chunks. It examines every
 * character once and stores only the nesting. Reference: RFC 8259, except that control characters in strings, which models do write, are
 * reported to the caller, who escapes them.
 */
export class JsonScan {
  /** "control": `scan` returned the position of a control character in a string. Continue after it. */
  state: "more" | "done" | "bad" | "control" = "more";
  #expect = value;
  /** The closing brackets of the open objects and arrays, outermost first. */
  #open: number[] = [];
  #isKey = false;
  #startsString = false;
  /** Number of hexadecimal digits that the current \u escape still needs. */
  #hex = 0;
  #scalar = "";

  /**
   * Scans from `from` and sets `state`. Returns the length of the text for "more", the end of the value for "done", and the position of
   * the offending character for "bad" and "control".
   */
  scan(text: string, from: number): number {
    this.state = "more";
    for (let i = from; i < text.length; i++) {
      const code = text.charCodeAt(i);
      switch (this.#expect) {
        case string:
          if (this.#hex > 0) {
            if (!isHex(code)) return this.#bad(i);
            this.#hex--;
          } else if (code === 34) {
            this.#expect = this.#isKey ? colon : commaOrEnd;
            if (this.#open.length === 0) return this.#done(i + 1);
          } else if (code === 92) this.#expect = escape;
          else if (code < 32) {
            this.state = "control";
            return i;
          }
          continue;
        case escape:
          if (code === 117) this.#hex = 4;
          else if (!escapable.has(code)) return this.#bad(i);
          this.#expect = string;
          continue;
        case scalar:
          if (isScalar(code)) {
            if (this.#scalar.length >= maxScalarLength) return this.#bad(i);
            this.#scalar += text[i];
            continue;
          }
          if (!wholeScalar.test(this.#scalar)) return this.#bad(i);
          this.#expect = commaOrEnd;
          if (this.#open.length === 0) return this.#done(i);
          break;
      }
      if (code === 32 || code === 10 || code === 13 || code === 9) continue;
      switch (this.#expect) {
        case value:
        case valueOrEnd:
          if (code === 93 && this.#expect === valueOrEnd) {
            if (this.#close(code)) return this.#done(i + 1);
          } else if (!this.#begin(code, text[i] ?? "")) return this.#bad(i);
          continue;
        case key:
        case keyOrEnd:
          if (code === 125 && this.#expect === keyOrEnd) {
            if (this.#close(code)) return this.#done(i + 1);
            continue;
          }
          if (code !== 34) return this.#bad(i);
          this.#expect = string;
          this.#isKey = true;
          continue;
        case colon:
          if (code !== 58) return this.#bad(i);
          this.#expect = value;
          continue;
        case commaOrEnd:
          if (code === 44) {
            this.#expect = this.#open.at(-1) === 125 ? key : value;
            continue;
          }
          if (code !== this.#open.at(-1)) return this.#bad(i);
          if (this.#close(code)) return this.#done(i + 1);
      }
    }
    return text.length;
  }

  /** Whether the value begins as a string. */
  get isString(): boolean {
    return this.#startsString;
  }

  /** Whether more than the opening bracket of the value is valid so far. */
  get certain(): boolean {
    if (this.state === "done" || this.#open.length > 1) return true;
    if (this.#open.length === 0) return this.#expect !== value;
    return this.#expect !== keyOrEnd && this.#expect !== valueOrEnd;
  }

  /** Whether the value is complete if the text ends here: a number or a literal name has no end marker. */
  get complete(): boolean {
    if (this.state === "done") return true;
    return this.#expect === scalar && this.#open.length === 0 && wholeScalar.test(this.#scalar);
  }

  #begin(code: number, character: string): boolean {
    if (code === 123) {
      this.#open.push(125);
      this.#expect = keyOrEnd;
    } else if (code === 91) {
      this.#open.push(93);
      this.#expect = valueOrEnd;
    } else if (code === 34) {
      if (this.#open.length === 0) this.#startsString = true;
      this.#expect = string;
      this.#isKey = false;
    } else if (isScalar(code)) {
      this.#expect = scalar;
      this.#scalar = character;
    } else return false;
    return true;
  }

  /** Returns whether that was the outermost bracket. */
  #close(code: number): boolean {
    if (this.#open.at(-1) === code) this.#open.pop();
    this.#expect = commaOrEnd;
    return this.#open.length === 0;
  }

  #done(at: number): number {
    this.state = "done";
    return at;
  }

  #bad(at: number): number {
    this.state = "bad";
    return at;
  }
}

const value = 0;
const valueOrEnd = 1;
const keyOrEnd = 2;
const key = 3;
const colon = 4;
const commaOrEnd = 5;
const string = 6;
const escape = 7;
const scalar = 8;

const wholeScalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;
/** Maximum length of a number: bounds what is stored of one. */
const maxScalarLength = 1100;
const escapable = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));

export function isHex(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102);
}

/** Digits, letters, `+`, `-`, `.`. */
function isScalar(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    code === 43 ||
    code === 45 ||
    code === 46
  );
}

/** Decodes a JSON string that arrives in chunks, after its opening quote. A surrogate pair written as two escapes is emitted whole. */
export class JsonStringDecoder {
  /** The closing quote was read. */
  closed = false;
  /** The position after the last character that was read. */
  pos = 0;
  #escape = "";
  /** A high surrogate that waits for the low one. */
  #highSurrogate = "";

  /** Reads on from `from`. Returns the decoded text of this chunk. */
  read(text: string, from: number): string {
    let decoded = this.#highSurrogate;
    this.#highSurrogate = "";
    let i = from;
    while (i < text.length && !this.closed) {
      const code = text.charCodeAt(i);
      if (this.#escape !== "") {
        this.#escape += text[i];
        i++;
        if (this.#escape.length < (this.#escape[1] === "u" ? 6 : 2)) continue;
        decoded += decodeEscape(this.#escape);
        this.#escape = "";
      } else if (code === 34 || code === 92) {
        if (code === 34) this.closed = true;
        else this.#escape = "\\";
        i++;
      } else {
        const start = i;
        while (i < text.length && text.charCodeAt(i) !== 34 && text.charCodeAt(i) !== 92) i++;
        decoded += text.slice(start, i);
      }
    }
    this.pos = i;
    const last = decoded.charCodeAt(decoded.length - 1);
    if (this.closed || !(last >= 0xd800 && last <= 0xdbff)) return decoded;
    this.#highSurrogate = decoded.slice(-1);
    return decoded.slice(0, -1);
  }

  /** No more text will arrive. Returns a high surrogate that is still held back. */
  end(): string {
    const rest = this.#highSurrogate;
    this.#highSurrogate = "";
    return rest;
  }
}

/** The character of a complete escape; an invalid escape is returned unchanged. */
function decodeEscape(escape: string): string {
  try {
    return String(JSON.parse(`"${escape}"`));
  } catch {
    return escape;
  }
}

/** Receives the JSON of a call's arguments in chunks. */
export interface ArgumentSink {
  /** Writes JSON that represents `raw`, which was consumed from the cursor. */
  write(json: string, raw: string): void;
  /** Writes JSON that represents all pending text, and consumes that. */
  json(text: string): void;
}

/** Escapes text for a JSON string. Surrogates stay as they are: a pair may be split over two chunks. */
export function escapeCharacters(text: string): string {
  return mustEscape.test(text) ? text.replace(everyMustEscape, (found) => JSON.stringify(found).slice(1, -1)) : text;
}

// oxlint-disable-next-line no-control-regex -- JSON forbids exactly these
const mustEscape = /["\\\u0000-\u001f]/;
// oxlint-disable-next-line no-control-regex
const everyMustEscape = /["\\\u0000-\u001f]/g;
