import { isJsonText } from "../../wire/core/json.ts";
import { random } from "../../wire/random/random.ts";

/** A number that JavaScript cannot represent: its text in the document. */
export class ExactNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** The beginning of a text that represents a number. */
const exactMark = `\u{F8FF}${random()}:`;

/** Parses JSON. Numbers that would lose digits are `ExactNumber`s. Throws `SyntaxError`. */
export function parseJson(text: string): unknown {
  if (!/[[:,\s]-?\d[\d.]*(?:\d{15}|[eE])/.test(text)) return JSON.parse(text);
  // `JSON.parse` gives a reviver the text of a number only in newer browsers.
  const marked = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    token.startsWith('"') || !isInexact(Number(token), token) ? token : `"${exactMark}${token}"`,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(exactMark) ? new ExactNumber(value.slice(exactMark.length)) : value,
  );
}

function isInexact(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return true;
  return /^-?\d{16,}$/.test(source) && BigInt(source) !== BigInt(value);
}

/**
 * The JSON of a text: a document, or the list of those in an event stream or in lines (NDJSON). Returns undefined if there is no JSON.
 */
export function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    const values = text.split("\n").flatMap((line): unknown[] => {
      const json = line.replace(/^data:/, "").trim();
      if (json[0] !== "{" && json[0] !== "[") return [];
      try {
        return [parseJson(json)];
      } catch {
        return [];
      }
    });
    return values.length > 0 ? values : undefined;
  }
}

/** A scalar as JSON writes it. */
export function scalarJson(value: unknown): string {
  return value instanceof ExactNumber ? value.source : (JSON.stringify(value) ?? "");
}

/** A value of `parseJson` as JSON, indented by two spaces or by none. */
export function jsonText(value: unknown, indent: 0 | 2 = 2): string {
  if (value instanceof ExactNumber) return value.source;
  const replace = (_: string, item: unknown): unknown =>
    item instanceof ExactNumber ? `${exactMark}${item.source}` : item;
  return JSON.stringify(value, replace, indent).replaceAll(new RegExp(`"${exactMark}([^"]*)"`, "g"), "$1");
}

/** Deeper members and items are not indented further. */
const maxIndent = 40;

/**
 * Returns a JSON text with a line for each member and item, indented by two spaces. Strings and numbers stay as they were written: parsing
 * them would round large numbers. A text that is not JSON is returned as it is.
 */
export function indentedJson(text: string): string {
  if (!isJsonText(text)) return text;
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],:]|[^\s"{}[\],:]+/g) ?? [];
  const written: string[] = [];
  let depth = 0;
  let before = "";
  for (const token of tokens) {
    const wasOpened = before === "{" || before === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth--;
    if (closes ? !wasOpened : wasOpened || before === ",") written.push("\n", "  ".repeat(Math.min(depth, maxIndent)));
    written.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth++;
    before = token;
  }
  return written.join("");
}
