import type { Steps } from "./steps.ts";

const [quote, backslash, comma, colon, letterU] = [0x22, 0x5c, 0x2c, 0x3a, 0x75];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Bytes between two steps. */
const stepSize = 64 * 1024;

type Expected =
  | "a value"
  | "a value or ]"
  | "a name in double quotes"
  | "a name in double quotes or }"
  | "a colon"
  | "a comma or }"
  | "a comma or ]"
  | "the end of the body";

/** The first place where a text is not JSON. */
export interface JsonMistake {
  /** From 1. Columns count characters. */
  readonly line: number;
  readonly column: number;
  /** The characters before it. */
  readonly char: number;
  /** The text ends too early. */
  readonly isEnd: boolean;
  /** Such as `a value`. */
  readonly expected: string;
  /** A character, its number such as `U+0000`, or `the end of the body`. */
  readonly found: string;
  /** Such as `line 1, column 9: expected a value, found }`. */
  readonly text: string;
}

/**
 * Finds the first place where a text is not JSON (RFC 8259). The text is UTF-8 without a byte order mark. Returns undefined if all of it is JSON, apart from bytes that are not UTF-8. Takes time that
 * is linear in the text, in steps of less than a millisecond.
 */
export function* findJsonMistake(bytes: Uint8Array): Steps<JsonMistake | undefined> {
  /** The closing brackets of the open lists and objects, outermost first. */
  const open: number[] = [];
  const afterValue = (): Expected => {
    const closing = open.at(-1);
    return closing === undefined ? "the end of the body" : closing === closeList ? "a comma or ]" : "a comma or }";
  };
  let expected: Expected = "a value";
  for (let at = 0, from = 0; ;) {
    if (at - from >= stepSize) {
      from = at;
      yield;
    }
    const byte = bytes[at];
    if (isBlank(byte)) {
      at++;
    } else if (byte === undefined && expected === "the end of the body") {
      return undefined;
    } else if (byte === quote && (expected.startsWith("a name") || expected.startsWith("a value"))) {
      const { end, mistake } = yield* stringAt(bytes, at + 1);
      if (mistake !== undefined) return yield* describe(bytes, end, mistake);
      expected = expected.startsWith("a name") ? "a colon" : afterValue();
      at = end;
    } else if ((byte === openList || byte === openObject) && expected.startsWith("a value")) {
      open.push(byte === openList ? closeList : closeObject);
      expected = byte === openList ? "a value or ]" : "a name in double quotes or }";
      at++;
    } else if ((byte === closeList || byte === closeObject) && expected.endsWith(` or ${String.fromCharCode(byte)}`)) {
      open.pop();
      expected = afterValue();
      at++;
    } else if (byte === comma && expected.startsWith("a comma")) {
      expected = open.at(-1) === closeList ? "a value" : "a name in double quotes";
      at++;
    } else if (byte === colon && expected === "a colon") {
      expected = "a value";
      at++;
    } else {
      const end = expected.startsWith("a value") ? endOfScalar(bytes, at) : at;
      if (end === at) return yield* describe(bytes, at, expected);
      expected = afterValue();
      at = end;
    }
  }
}

/**
 * Returns the end of a string, after its closing quote, or where it is invalid and what was expected there. `at`: after its opening quote.
 */
function* stringAt(bytes: Uint8Array, at: number): Steps<{ readonly end: number; readonly mistake?: string }> {
  for (let from = at; ; at++) {
    if (at - from >= stepSize) {
      from = at;
      yield;
    }
    const byte = bytes[at];
    if (byte === quote) return { end: at + 1 };
    if (byte === undefined) return { end: at, mistake: "the closing double quote of a string" };
    if (byte < 0x20) return { end: at, mistake: "an escape, such as \\n, in place of a control character" };
    if (byte !== backslash) continue;
    const escaped = bytes[++at];
    if (escaped === letterU) {
      for (let digit = 0; digit < 4; digit++)
        if (!isHexDigit(bytes[++at])) return { end: at, mistake: "four hexadecimal digits after \\u" };
    } else if (escaped === undefined || !'"\\/bfnrt'.includes(String.fromCharCode(escaped)))
      return { end: at, mistake: 'one of " \\ / b f n r t u after \\' };
  }
}

/** Returns the end of a number, `true`, `false` or `null` that begins at `at`; `at` if nothing of these does. */
function endOfScalar(bytes: Uint8Array, at: number): number {
  let end = at;
  while (isScalar(bytes[end])) end++;
  const text = new TextDecoder("latin1").decode(bytes.subarray(at, end));
  return /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(text) ? end : at;
}

function* describe(bytes: Uint8Array, at: number, expected: string): Steps<JsonMistake> {
  let [line, column, char] = [1, 1, 0];
  for (let before = 0; before < at; before++) {
    const byte = bytes[before] ?? 0;
    if ((byte & 0xc0) !== 0x80) char++;
    if (byte === 0x0a) {
      line++;
      column = 1;
      // Bytes that continue a character.
    } else if ((byte & 0xc0) !== 0x80) column++;
    if (before % stepSize === stepSize - 1) yield;
  }
  const found = characterAt(bytes, at);
  const text = `line ${line}, column ${column}: expected ${expected}, found ${found}`;
  return { line, column, char, isEnd: at >= bytes.length, expected, found, text };
}

function characterAt(bytes: Uint8Array, at: number): string {
  if (at >= bytes.length) return "the end of the body";
  const [first = ""] = new TextDecoder().decode(bytes.subarray(at, at + 4));
  const code = first.codePointAt(0) ?? 0;
  // No control characters, blanks or halves of characters.
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(first) ? first : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function isHexDigit(byte = 0): boolean {
  return /[\da-fA-F]/.test(String.fromCharCode(byte));
}

/** Whether the byte is white space of JSON. */
export function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Digits, letters, `+`, `-`, `.`. */
export function isScalar(byte = 0): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a) ||
    [0x2b, 0x2d, 0x2e].includes(byte)
  );
}
