/**
 * A number whose JSON text JavaScript would not give back: `1.0`, `1e3`, an integer beyond 2^53. Templates print the arguments of
 * earlier calls, and a model should read them as it wrote them.
 */
export class ExactNumber {
  /** As Python reads the text: a float where it has a point or an exponent, else an integer. */
  readonly value: number | bigint;

  constructor(text: string) {
    this.value = /[.eE]/.test(text) ? Number(text) : BigInt(text);
  }
}

/** Parses JSON, keeping numbers exact. Throws `SyntaxError` as `JSON.parse` does. */
export function parseExactJson(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  if (!/\d(?:\.\d|[eE]|\d{15})/.test(text)) return parsed;
  const pieces = text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\]]|true|false|null/g) ?? [];
  return read(pieces[Symbol.iterator](), new Set([""])).value;
}

/** The next value, or the closing bracket in its place. The text is known to be JSON, so commas and colons are skipped. */
function read(pieces: Iterator<string, undefined>, closing: ReadonlySet<string>): { value: unknown; closed: boolean } {
  const piece = pieces.next().value ?? "";
  if (closing.has(piece)) return { value: undefined, closed: true };
  const next = (): { value: unknown; closed: boolean } => read(pieces, brackets);
  if (piece === "[") {
    const list: unknown[] = [];
    for (let item = next(); !item.closed; item = next()) list.push(item.value);
    return { value: list, closed: false };
  }
  if (piece === "{") {
    const entries: [string, unknown][] = [];
    for (let key = next(); !key.closed; key = next()) entries.push([String(key.value), next().value]);
    return { value: Object.fromEntries(entries), closed: false };
  }
  return { value: /^[-\d]/.test(piece) ? number(piece) : (JSON.parse(piece) as unknown), closed: false };
}

const brackets: ReadonlySet<string> = new Set(["]", "}"]);

function number(text: string): number | ExactNumber {
  const value = Number(text);
  const kept = /[.eE]/.test(text) ? !Number.isInteger(value) : Number.isSafeInteger(value);
  return kept ? value : new ExactNumber(text);
}
