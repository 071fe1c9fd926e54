import { LarkError } from "./lark-error.ts";

/** A token of a Lark grammar. `value`: a string's characters, a pattern, a name. */
export type LarkToken =
  | { readonly kind: "rule" | "terminal" | "operator" | "number" | "directive"; readonly value: string }
  | { readonly kind: "string" | "regex"; readonly value: string; readonly flags: string }
  | { readonly kind: "line"; readonly value: "" };

/** No grammar met in practice comes near this; beyond it, a grammar holds up the server. */
const maxLength = 100_000;

const space = /[ \t\f\r]+|\\\r?\n|(?:\/\/|#)[^\n]*/y;
const line = /\n/y;
const rule = /[!?]*(_*[a-z][_a-z0-9]*)/y;
const terminal = /_*[A-Z][_A-Z0-9]*/y;
const number = /-?\d+/y;
const directive = /%[a-z_]+/y;
const operator = /->|\.\.|[:|()[\]*+?~{},.<>=]/y;
const string = /"((?:[^"\\\n]|\\.)*)"(i?)/y;
const regex = /\/((?:\\.|[^/\\\n])+)\/([imslux]*)/y;

/**
 * The tokens of a grammar, in Lark's syntax (https://lark-parser.readthedocs.io/en/stable/grammar.html). Line ends stand for the end of a
 * definition: those before a further alternative, and within brackets, are left out.
 *
 * @throws {LarkError}
 */
export function larkTokens(source: string): LarkToken[] {
  if (source.length > maxLength) throw new LarkError(`the grammar is longer than ${maxLength} characters`);
  const tokens: LarkToken[] = [];
  let at = 0;
  let depth = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (found) at = pattern.lastIndex;
    return found;
  };
  while (at < source.length) {
    if (match(space)) continue;
    if (match(line)) {
      if (depth === 0) tokens.push({ kind: "line", value: "" });
      continue;
    }
    const text = match(string);
    if (text) {
      tokens.push({ kind: "string", value: unescaped(text[1] ?? ""), flags: text[2] ?? "" });
      continue;
    }
    const pattern = match(regex);
    if (pattern) {
      tokens.push({ kind: "regex", value: (pattern[1] ?? "").replaceAll("\\/", "/"), flags: pattern[2] ?? "" });
      continue;
    }
    const name = match(rule);
    if (name) {
      tokens.push({ kind: "rule", value: name[1] ?? "" });
      continue;
    }
    const found = firstOf(match);
    if (found === null) throw new LarkError(`unexpected ${JSON.stringify(source.slice(at, at + 10))}`);
    if (found.value === "(" || found.value === "[") depth++;
    else if (found.value === ")" || found.value === "]") depth--;
    tokens.push(found);
  }
  return withoutInnerLines(tokens);
}

const simple = [
  { kind: "terminal", form: terminal },
  { kind: "directive", form: directive },
  { kind: "operator", form: operator },
  { kind: "number", form: number },
] as const;

/** A token that is its own text. */
function firstOf(match: (form: RegExp) => RegExpExecArray | null): LarkToken | null {
  for (const { kind, form } of simple) {
    const found = match(form);
    if (found) return { kind, value: found[0] };
  }
  return null;
}

/** A line that begins with `|` goes on with the definition before it. */
function withoutInnerLines(tokens: readonly LarkToken[]): LarkToken[] {
  const kept: LarkToken[] = [];
  for (const token of tokens) {
    if (token.value === "|" && token.kind === "operator") while (kept.at(-1)?.kind === "line") kept.pop();
    kept.push(token);
  }
  return kept;
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", '"': '"', "\\": "\\" };

/** The characters of a literal; an escape that is none stands for itself, as in Python. */
function unescaped(source: string): string {
  return source.replace(
    /\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/gs,
    (whole, x, u, U, other) => {
      const code = (x ?? u ?? U) as string | undefined;
      if (code !== undefined) return characterOf(Number.parseInt(code, 16));
      return escapes[other as string] ?? whole;
    },
  );
}

function characterOf(codePoint: number): string {
  if (codePoint > 0x10ffff || (codePoint >= 0xd800 && codePoint <= 0xdfff)) {
    throw new LarkError(`U+${codePoint.toString(16).toUpperCase()} is no character`);
  }
  return String.fromCodePoint(codePoint);
}
