/**
 * A number that JavaScript would print differently from its JSON text: `1.0`, `1e3`, an integer above 2^53. Templates print the arguments
 * of earlier calls, which the model should read as it wrote them.
 */
export class ExactNumber {
  /** As in Python: a float if the text has a point or an exponent, else an integer. */
  readonly value: number | bigint;

  constructor(text: string) {
    this.value = /[.eE]/.test(text) ? Number(text) : BigInt(text);
  }
}

/** Parses JSON without changing how numbers are printed. Throws `SyntaxError` like `JSON.parse`. */
export function parseExactJson(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  if (!/\d(?:\.\d|[eE]|\d{15})/.test(text)) return parsed;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*|[{}[\]]|true|false|null/g) ?? [];
  return read(tokens[Symbol.iterator](), new Set([""])).value;
}

/** Reads the next value or a closing bracket. The tokens come from valid JSON, without commas and colons. */
function read(tokens: Iterator<string, undefined>, closing: ReadonlySet<string>): { value: unknown; closed: boolean } {
  const token = tokens.next().value ?? "";
  if (closing.has(token)) return { value: undefined, closed: true };
  const next = (): { value: unknown; closed: boolean } => read(tokens, brackets);
  if (token === "[") {
    const list: unknown[] = [];
    for (let item = next(); !item.closed; item = next()) list.push(item.value);
    return { value: list, closed: false };
  }
  if (token === "{") {
    const entries: [string, unknown][] = [];
    for (let key = next(); !key.closed; key = next()) entries.push([String(key.value), next().value]);
    return { value: Object.fromEntries(entries), closed: false };
  }
  return { value: /^[-\d]/.test(token) ? number(token) : (JSON.parse(token) as unknown), closed: false };
}

const brackets: ReadonlySet<string> = new Set(["]", "}"]);

function number(text: string): number | ExactNumber {
  const value = Number(text);
  const kept = /[.eE]/.test(text) ? !Number.isInteger(value) : Number.isSafeInteger(value);
  return kept ? value : new ExactNumber(text);
}
