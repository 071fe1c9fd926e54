import { LarkError } from "./grammar-errors.ts";

/** A node of a definition in a Lark grammar. */
export type LarkNode =
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "terminal"; readonly name: string }
  | { readonly kind: "text"; readonly text: string; readonly anyCase: boolean }
  | { readonly kind: "regex"; readonly pattern: string; readonly flags: string }
  | { readonly kind: "range"; readonly first: string; readonly last: string }
  | { readonly kind: "sequence"; readonly items: readonly LarkNode[] }
  | { readonly kind: "choice"; readonly options: readonly LarkNode[] }
  | { readonly kind: "repeat"; readonly item: LarkNode; readonly min: number; readonly max: number | null };

export interface LarkGrammar {
  readonly rules: ReadonlyMap<string, LarkNode>;
  readonly terminals: ReadonlyMap<string, LarkNode>;
  /** Imported terminals of Lark's library `common`, by their local names. */
  readonly imports: ReadonlyMap<string, string>;
  /** What may occur between all tokens. */
  readonly ignored: readonly LarkNode[];
}

const maxDepth = 200;

/**
 * Parses a Lark grammar: rules, terminals, literals, regular expressions, ranges, groups, repetitions, aliases, `%import` from `common` and
 * `%ignore`, as OpenAI documents it for custom tools. Aliases, priorities and the modifiers `?` and `!` change only the tree that Lark
 * builds and are ignored.
 *
 * @throws {LarkError} for malformed grammars, templates, `%declare`, `%override`, `%extend` and imports of other grammars.
 */
export function parseLark(source: string): LarkGrammar {
  return new LarkParser(larkTokens(source)).parse();
}

class LarkParser {
  readonly #tokens: readonly LarkToken[];
  #at = 0;
  #depth = 0;
  readonly #rules = new Map<string, LarkNode>();
  readonly #terminals = new Map<string, LarkNode>();
  readonly #imports = new Map<string, string>();
  readonly #ignored: LarkNode[] = [];

  constructor(tokens: readonly LarkToken[]) {
    this.#tokens = tokens;
  }

  parse(): LarkGrammar {
    for (let token = this.#next(); token !== undefined; token = this.#next()) {
      if (token.kind === "line") continue;
      if (token.kind === "directive") this.#directive(token.value);
      else if (token.kind === "rule" || token.kind === "terminal") this.#definition(token.kind, token.value);
      else throw unexpected(token);
    }
    const [rules, terminals, imports, ignored] = [this.#rules, this.#terminals, this.#imports, this.#ignored];
    return { rules, terminals, imports, ignored };
  }

  #definition(kind: "rule" | "terminal", name: string): void {
    if (this.#peek("{")) throw new LarkError(`templates (${name}{…}) are not supported`);
    if (this.#take(".")) this.#number();
    if (this.#peek("[")) throw new LarkError(`attributes (${name}[…]) are not supported`);
    this.#expect(":");
    const known = kind === "rule" ? this.#rules : this.#terminals;
    if (known.has(name)) throw new LarkError(`'${name}' is defined twice`);
    known.set(name, this.#alternatives());
    this.#endOfLine();
  }

  #directive(name: string): void {
    switch (name) {
      case "%import":
        return this.#import();
      case "%ignore":
        this.#ignored.push(this.#alternatives());
        return this.#endOfLine();
      default:
        throw new LarkError(`${name} is not supported`);
    }
  }

  /** `common.WORD`, `common.WORD -> NAME`, `common (A, B)`. */
  #import(): void {
    const library = this.#next();
    if (library?.kind !== "rule" || library.value !== "common") {
      throw new LarkError(`%import of ${JSON.stringify(library?.value ?? "nothing")} is not supported; only common is`);
    }
    if (this.#take(".")) {
      const name = this.#name();
      this.#imports.set(this.#take("->") ? this.#name() : name, name);
    } else {
      this.#expect("(");
      do {
        const name = this.#name();
        this.#imports.set(name, name);
      } while (this.#take(","));
      this.#expect(")");
    }
    this.#endOfLine();
  }

  #name(): string {
    const token = this.#next();
    if (token?.kind !== "terminal" && token?.kind !== "rule") throw unexpected(token);
    return token.value;
  }

  #alternatives(): LarkNode {
    if (++this.#depth > maxDepth) throw new LarkError("it is nested too deeply");
    const options = [this.#sequence()];
    while (this.#take("|")) options.push(this.#sequence());
    this.#depth--;
    return options.length === 1 && options[0] ? options[0] : { kind: "choice", options };
  }

  #sequence(): LarkNode {
    const items: LarkNode[] = [];
    for (let item = this.#item(); item !== null; item = this.#item()) items.push(item);
    if (this.#take("->")) this.#name();
    return items.length === 1 && items[0] ? items[0] : { kind: "sequence", items };
  }

  #item(): LarkNode | null {
    const atom = this.#atom();
    if (atom === null) return null;
    if (this.#take("?")) return { kind: "repeat", item: atom, min: 0, max: 1 };
    if (this.#take("*")) return { kind: "repeat", item: atom, min: 0, max: null };
    if (this.#take("+")) return { kind: "repeat", item: atom, min: 1, max: null };
    if (!this.#take("~")) return atom;
    const min = this.#number();
    const max = this.#take("..") ? this.#number() : min;
    if (max < min) throw new LarkError(`~ ${min}..${max} is not a valid repetition`);
    return { kind: "repeat", item: atom, min, max };
  }

  #atom(): LarkNode | null {
    const token = this.#tokens[this.#at];
    switch (token?.kind) {
      case "rule":
      case "terminal":
        this.#at++;
        if (this.#peek("{")) throw new LarkError(`templates (${token.value}{…}) are not supported`);
        return { kind: token.kind, name: token.value };
      case "string":
        this.#at++;
        return this.#take("..")
          ? this.#range(token.value)
          : { kind: "text", text: token.value, anyCase: token.flags === "i" };
      case "regex":
        this.#at++;
        return { kind: "regex", pattern: token.value, flags: token.flags };
      case "operator":
        if (token.value === "<") throw new LarkError("special tokens (<…>) are not supported");
        if (token.value === "(" || token.value === "[") return this.#group(token.value);
        return null;
      case "directive":
        throw new LarkError(`${token.value} is not supported here`);
      case "number":
        throw unexpected(token);
      case "line":
      case undefined:
        return null;
    }
  }

  #group(open: "(" | "["): LarkNode {
    this.#at++;
    const inside = this.#alternatives();
    this.#expect(open === "(" ? ")" : "]");
    return open === "(" ? inside : { kind: "repeat", item: inside, min: 0, max: 1 };
  }

  #range(first: string): LarkNode {
    const token = this.#next();
    if (token?.kind !== "string") throw unexpected(token);
    if ([...first].length !== 1 || [...token.value].length !== 1) {
      throw new LarkError("both ends of a range must be one character");
    }
    return { kind: "range", first, last: token.value };
  }

  #number(): number {
    const token = this.#next();
    if (token?.kind !== "number") throw unexpected(token);
    return Number(token.value);
  }

  #next(): LarkToken | undefined {
    return this.#tokens[this.#at++];
  }

  #peek(operator: string): boolean {
    const token = this.#tokens[this.#at];
    return token?.kind === "operator" && token.value === operator;
  }

  #take(operator: string): boolean {
    if (!this.#peek(operator)) return false;
    this.#at++;
    return true;
  }

  #expect(operator: string): void {
    if (!this.#take(operator)) throw unexpected(this.#tokens[this.#at], `expected '${operator}'`);
  }

  #endOfLine(): void {
    const token = this.#next();
    if (token !== undefined && token.kind !== "line") throw unexpected(token);
  }
}

function unexpected(token: LarkToken | undefined, expected = ""): LarkError {
  const got =
    token === undefined ? "the end" : token.kind === "line" ? "the end of the line" : JSON.stringify(token.value);
  return new LarkError(`unexpected ${got}${expected === "" ? "" : `, ${expected}`}`);
}

/** A token of a Lark grammar. `value`: the characters of a string, a pattern, or a name. */
type LarkToken =
  | { readonly kind: "rule" | "terminal" | "operator" | "number" | "directive"; readonly value: string }
  | { readonly kind: "string" | "regex"; readonly value: string; readonly flags: string }
  | { readonly kind: "line"; readonly value: "" };

/** Maximum length of a grammar: a longer one would block the server, and none in practice comes close. */
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
 * Splits a grammar into tokens, by Lark's syntax (https://lark-parser.readthedocs.io/en/stable/grammar.html). Line ends separate
 * definitions; those before a further alternative and within brackets are left out.
 *
 * @throws {LarkError}
 */
function larkTokens(source: string): LarkToken[] {
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

/** A line that begins with `|` continues the preceding definition. */
function withoutInnerLines(tokens: readonly LarkToken[]): LarkToken[] {
  const kept: LarkToken[] = [];
  for (const token of tokens) {
    if (token.value === "|" && token.kind === "operator") while (kept.at(-1)?.kind === "line") kept.pop();
    kept.push(token);
  }
  return kept;
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", '"': '"', "\\": "\\" };

/** The characters of a literal. As in Python, an unknown escape represents itself. */
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
    throw new LarkError(`U+${codePoint.toString(16).toUpperCase()} is not a character`);
  }
  return String.fromCodePoint(codePoint);
}
