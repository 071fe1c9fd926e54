import type {
  Argument,
  Statements,
  Branch,
  CallBlock,
  TemplateExpression,
  FilterLink,
  Link,
  Operation,
  MacroParameter,
  Statement,
  Syntax,
  AssignmentTarget,
} from "./syntax.ts";
import { tokenizeTemplate, TokenReader } from "./tokenize.ts";

/**
 * Parses a template: Jinja's grammar as far as chat templates use it, with loop controls, `do` and transformers' `generation` blocks.
 * Templates that include others (`include`, `extends`, `block` …) and recursive loops are not supported. Throws
 * `TemplateSyntaxError`.
 */
export function parseTemplate(source: string): Syntax {
  const tokens = tokenizeTemplate(source);
  const parser = new StatementParser(new TokenReader(tokens));
  return {
    body: parser.template(),
    literals: tokens.tokens.flatMap(({ kind, text }) => (kind === "text" || kind === "string" ? text : [])),
  };
}

class StatementParser {
  readonly #tokens: TokenReader;
  /** How many loops enclose the current statement, within its macro. */
  #loops = 0;

  constructor(tokens: TokenReader) {
    this.#tokens = tokens;
  }

  template(): Statements {
    const body = this.#statements([]);
    this.#tokens.expect("end");
    return body;
  }

  /** Parses statements up to a tag with one of these names, whose name is then the next token, or to the end of the template. */
  #statements(ends: readonly string[]): Statements {
    const tokens = this.#tokens;
    const body: Statement[] = [];
    for (;;) {
      if (tokens.is("end")) return body;
      const { kind, text } = tokens.next();
      if (kind === "text") body.push({ kind, text });
      else if (kind === "{{") {
        body.push({ kind: "print", value: parseTuple(tokens) });
        tokens.expect("}}");
      } else {
        if (tokens.is("name", ...ends) && ends.length > 0) return body;
        body.push(tokens.nested(() => this.#statement(ends)));
        tokens.expect("%}");
      }
    }
  }

  /** Parses the `%}` of a tag and the statements up to an end tag with one of these names, whose name is then the next token. */
  #body(...ends: readonly string[]): Statements {
    const tokens = this.#tokens;
    const start = tokens.peek();
    // As in Python, a colon may end the tag.
    tokens.skip("operator", ":");
    tokens.expect("%}");
    const body = this.#statements(ends);
    if (tokens.is("end")) {
      tokens.fail(`this block has no ${ends.map((end) => `'{% ${end} %}'`).join(" or ")}`, start);
    }
    return body;
  }

  /** Like `#body`, and takes the name of the end tag. */
  #block(end: string): Statements {
    const body = this.#body(end);
    this.#tokens.next();
    return body;
  }

  #statement(ends: readonly string[]): Statement {
    const tokens = this.#tokens;
    const tag = tokens.expect("name");
    switch (tag.text) {
      case "if":
        return this.#if();
      case "for":
        return this.#for();
      case "set":
        return this.#set();
      case "macro": {
        const name = tokens.expect("name").text;
        const parameters = this.#parameters();
        return { kind: "macro", name, parameters, body: this.#apart(() => this.#block("endmacro")) };
      }
      case "call":
        return this.#call();
      case "filter": {
        const filters = parseFilters(tokens);
        return { kind: "filter-block", filters, body: this.#block("endfilter") };
      }
      case "generation":
        return { kind: "generation", body: this.#block("endgeneration") };
      case "do":
        return { kind: "do", value: parseTuple(tokens) };
      case "break":
      case "continue":
        if (this.#loops === 0) tokens.fail(`'${tag.text}' outside of a loop`, tag);
        return { kind: tag.text };
      default: {
        const expected = ends.length === 0 ? "" : `; expected ${ends.map((end) => `'${end}'`).join(" or ")}`;
        return tokens.fail(`unknown tag '${tag.text}'${expected}`, tag);
      }
    }
  }

  #if(): Statement {
    const tokens = this.#tokens;
    const branches: Branch[] = [];
    for (;;) {
      const test = parseTuple(tokens, false);
      branches.push({ test, body: this.#body("elif", "else", "endif") });
      const { text } = tokens.next();
      if (text === "elif") continue;
      return { kind: "if", branches, otherwise: text === "else" ? this.#block("endif") : [] };
    }
  }

  #for(): Statement {
    const tokens = this.#tokens;
    const target = this.#target(false);
    tokens.expect("name", "in");
    const items = parseTuple(tokens, false);
    const condition = tokens.skip("name", "if") ? parseExpression(tokens) : null;
    if (tokens.is("name", "recursive")) tokens.fail("recursive loops are not supported");
    const mentions = tokens.loopMentions;
    this.#loops++;
    const body = this.#body("endfor", "else");
    this.#loops--;
    const usesLoop = tokens.loopMentions > mentions;
    const otherwise = tokens.next().text === "else" ? this.#block("endfor") : [];
    return { kind: "for", target, items, condition, body, otherwise, usesLoop };
  }

  #set(): Statement {
    const tokens = this.#tokens;
    const target = this.#target(true);
    if (tokens.skip("operator", "=")) return { kind: "set", target, value: parseTuple(tokens) };
    const filters = tokens.skip("operator", "|") ? parseFilters(tokens) : [];
    return { kind: "set-block", target, filters, body: this.#block("endset") };
  }

  #call(): CallBlock {
    const tokens = this.#tokens;
    const parameters = tokens.is("operator", "(") ? this.#parameters() : [];
    const start = tokens.peek();
    const called = parseExpression(tokens);
    const call = called.kind === "chain" ? called.links.at(-1) : undefined;
    if (called.kind !== "chain" || call?.kind !== "call") return tokens.fail("a call block needs a call", start);
    const links = called.links.slice(0, -1);
    const macro: TemplateExpression = links.length === 0 ? called.base : { ...called, links };
    return { kind: "call-block", macro, args: call.args, parameters, body: this.#apart(() => this.#block("endcall")) };
  }

  /** Parses the body of a macro or call block, which cannot leave an enclosing loop. */
  #apart<T>(parse: () => T): T {
    const loops = this.#loops;
    this.#loops = 0;
    const parsed = parse();
    this.#loops = loops;
    return parsed;
  }

  #parameters(): MacroParameter[] {
    const tokens = this.#tokens;
    const parameters: MacroParameter[] = [];
    tokens.expect("operator", "(");
    while (!tokens.is("operator", ")")) {
      if (parameters.length > 0) tokens.expect("operator", ",");
      const name = tokens.expect("name").text;
      const otherwise = tokens.skip("operator", "=") ? parseExpression(tokens) : null;
      if (otherwise === null && parameters.at(-1)?.otherwise) {
        tokens.fail(`'${name}' needs a default, as the parameter before it has one`);
      }
      parameters.push({ name, otherwise });
    }
    tokens.next();
    return parameters;
  }

  /** Parses one or several names. `members`: also allows members of a namespace. */
  #target(members: boolean): AssignmentTarget {
    const tokens = this.#tokens;
    const targets: AssignmentTarget[] = [];
    let several = false;
    do {
      if (several && tokens.is("%}")) break;
      targets.push(this.#oneTarget(members));
      several ||= tokens.is("operator", ",");
    } while (tokens.skip("operator", ","));
    const [first] = targets;
    return several || first === undefined ? { kind: "tuple", targets } : first;
  }

  #oneTarget(members: boolean): AssignmentTarget {
    const tokens = this.#tokens;
    const start = tokens.peek();
    const target = this.#asTarget(parsePrimary(tokens));
    if (target === null) return tokens.fail("this cannot be assigned to", start);
    if (!members || target.kind !== "name" || !tokens.skip("operator", ".")) return target;
    return { kind: "member", namespace: target.name, name: tokens.expect("name").text };
  }

  /** Returns null if the expression cannot be assigned to. */
  #asTarget(expression: TemplateExpression): AssignmentTarget | null {
    if (expression.kind === "name") return expression;
    if (expression.kind !== "tuple") return null;
    const targets = expression.items.map((item) => this.#asTarget(item));
    return targets.every((target) => target !== null) ? { kind: "tuple", targets } : null;
  }
}

/**
 * Jinja's expressions, with its precedence: choice, `or`, `and`, `not`, comparison, `+ -`, `~`, `* / // %`, `**`, sign, and then the
 * links of a value (members, calls, filters, tests). Throws `TemplateSyntaxError`.
 */
export function parseExpression(tokens: TokenReader): TemplateExpression {
  return tokens.nested(() => {
    const chosen = parseCondition(tokens);
    if (!tokens.skip("name", "if")) return chosen;
    const test = parseCondition(tokens);
    const otherwise = tokens.skip("name", "else") ? parseExpression(tokens) : null;
    return { kind: "choice", test, chosen, otherwise };
  });
}

/** Parses an expression, or several with commas between them as a tuple. `choices`: allows `a if b else c`. */
export function parseTuple(tokens: TokenReader, choices = true): TemplateExpression {
  const one = choices ? parseExpression : parseCondition;
  const first = one(tokens);
  if (!tokens.is("operator", ",")) return first;
  const items = [first];
  while (tokens.skip("operator", ",") && !endsTuple(tokens)) items.push(one(tokens));
  return { kind: "tuple", items };
}

function endsTuple(tokens: TokenReader): boolean {
  return tokens.is("}}") || tokens.is("%}") || tokens.is("operator", ")");
}

/** Parses an expression without `if`, for places where a following `if` has another meaning. */
export function parseCondition(tokens: TokenReader): TemplateExpression {
  return parseJoined(tokens, "or", () => parseJoined(tokens, "and", () => parseNot(tokens)));
}

function parseJoined(
  tokens: TokenReader,
  kind: "or" | "and",
  parseOperand: () => TemplateExpression,
): TemplateExpression {
  const first = parseOperand();
  if (!tokens.is("name", kind)) return first;
  const operands = [first];
  while (tokens.skip("name", kind)) operands.push(parseOperand());
  return { kind, operands };
}

function parseNot(tokens: TokenReader): TemplateExpression {
  if (!tokens.skip("name", "not")) return parseComparison(tokens);
  return { kind: "not", operand: tokens.nested(() => parseNot(tokens)) };
}

function parseComparison(tokens: TokenReader): TemplateExpression {
  const first = parseArithmetic(tokens);
  const rest: Operation[] = [];
  for (let operator = comparison(tokens); operator !== null; operator = comparison(tokens)) {
    rest.push({ operator, operand: parseArithmetic(tokens) });
  }
  return rest.length === 0 ? first : { kind: "comparison", first, rest };
}

/** Takes a comparison operator, if there is one. */
function comparison(tokens: TokenReader): string | null {
  if (tokens.is("operator", "==", "!=", "<", "<=", ">", ">=") || tokens.is("name", "in")) return tokens.next().text;
  const { kind, text } = tokens.peek(1);
  if (!tokens.is("name", "not") || kind !== "name" || text !== "in") return null;
  tokens.next();
  tokens.next();
  return "not in";
}

/** From the weakest to the strongest. All are left-associative, unlike in Python: `2 ** 3 ** 2` is 64. */
const arithmeticLevels: readonly (readonly string[])[] = [["+", "-"], ["~"], ["*", "/", "//", "%"], ["**"]];

function parseArithmetic(tokens: TokenReader, level = 0): TemplateExpression {
  const operators = arithmeticLevels[level];
  if (operators === undefined) return parseFiltered(tokens);
  const first = parseArithmetic(tokens, level + 1);
  const rest: Operation[] = [];
  while (tokens.is("operator", ...operators)) {
    rest.push({ operator: tokens.next().text, operand: parseArithmetic(tokens, level + 1) });
  }
  return rest.length === 0 ? first : { kind: "arithmetic", first, rest };
}

/** Parses a value with filters and tests, which bind weaker than a sign: `-1 | abs` is 1. */
function parseFiltered(tokens: TokenReader): TemplateExpression {
  const base = parseSigned(tokens);
  const links: Link[] = [];
  for (;;) {
    if (tokens.skip("operator", "|")) links.push(parseFilter(tokens));
    else if (tokens.skip("name", "is")) links.push(parseTest(tokens));
    else if (links.length > 0 && tokens.is("operator", "("))
      links.push({ kind: "call", args: parseCallArguments(tokens) });
    else return linked(base, links);
  }
}

function parseSigned(tokens: TokenReader): TemplateExpression {
  if (!tokens.is("operator", "+", "-")) return parsePostfix(tokens);
  const sign = tokens.next().text === "-" ? "-" : "+";
  return { kind: "sign", sign, operand: tokens.nested(() => parseSigned(tokens)) };
}

/** Parses a value with members and calls. */
function parsePostfix(tokens: TokenReader): TemplateExpression {
  const base = parsePrimary(tokens);
  const links: Link[] = [];
  for (;;) {
    if (tokens.skip("operator", ".")) links.push(parseMember(tokens));
    else if (tokens.skip("operator", "[")) links.push(parseSubscript(tokens));
    else if (tokens.is("operator", "(")) links.push({ kind: "call", args: parseCallArguments(tokens) });
    else return linked(base, links);
  }
}

function linked(base: TemplateExpression, links: readonly Link[]): TemplateExpression {
  if (links.length === 0) return base;
  if (base.kind !== "chain") return { kind: "chain", base, links };
  return { kind: "chain", base: base.base, links: [...base.links, ...links] };
}

/** Parses the filters of `{% set name | … %}` and `{% filter … %}`: `first | second(args)`. */
export function parseFilters(tokens: TokenReader): FilterLink[] {
  const filters = [parseFilter(tokens)];
  while (tokens.skip("operator", "|")) filters.push(parseFilter(tokens));
  return filters;
}

function parseFilter(tokens: TokenReader): FilterLink {
  const name = dottedName(tokens);
  return { kind: "filter", name, args: tokens.is("operator", "(") ? parseCallArguments(tokens) : [] };
}

/** A single argument needs no brackets: `x is divisibleby 3`. */
function parseTest(tokens: TokenReader): Link {
  const negated = tokens.skip("name", "not");
  const name = dottedName(tokens);
  if (tokens.is("operator", "(")) return { kind: "test", name, negated, args: parseCallArguments(tokens) };
  if (tokens.is("name", "is")) tokens.fail("a test cannot follow a test");
  const args: Argument[] = beginsArgument(tokens) ? [{ kind: "positional", value: parsePostfix(tokens) }] : [];
  return { kind: "test", name, negated, args };
}

function beginsArgument(tokens: TokenReader): boolean {
  if (tokens.is("name")) return !tokens.is("name", "else", "or", "and");
  return tokens.is("string") || tokens.is("integer") || tokens.is("float") || tokens.is("operator", "[", "{");
}

function dottedName(tokens: TokenReader): string {
  let name = tokens.expect("name").text;
  while (tokens.skip("operator", ".")) name += `.${tokens.expect("name").text}`;
  return name;
}

function parseMember(tokens: TokenReader): Link {
  if (tokens.is("name")) return { kind: "attribute", name: tokens.next().text };
  if (!tokens.is("integer")) tokens.fail(`expected a name or a number, got ${tokens.shown()}`);
  return { kind: "item", key: { kind: "integer", number: numberOf(tokens.next().text) } };
}

/** Parses `[…]` after a value; the opening bracket has been read. */
function parseSubscript(tokens: TokenReader): Link {
  const bounds: (TemplateExpression | null)[] = [];
  const bound = (): TemplateExpression | null => (tokens.is("operator", ":", "]") ? null : parseExpression(tokens));
  const first = bound();
  bounds.push(first);
  while (bounds.length < 3 && tokens.skip("operator", ":")) bounds.push(bound());
  if (bounds.length === 1 && first === null) tokens.fail("'[]' needs a key");
  tokens.expect("operator", "]");
  return bounds.length > 1 || first === null ? { kind: "slice", bounds } : { kind: "item", key: first };
}

/** Parses the arguments of a call, including the brackets. */
export function parseCallArguments(tokens: TokenReader): Argument[] {
  const args: Argument[] = [];
  tokens.expect("operator", "(");
  while (!tokens.is("operator", ")")) {
    if (args.length > 0) tokens.expect("operator", ",");
    if (tokens.is("operator", ")")) break;
    const start = tokens.peek();
    const argument = parseArgument(tokens);
    const last = args.at(-1)?.kind ?? "positional";
    if (!mayFollow[last].includes(argument.kind)) tokens.fail("this argument cannot follow the one before it", start);
    args.push(argument);
  }
  tokens.next();
  return args;
}

/** The order of arguments: `f(1, key=2, *more, **others)`. */
const mayFollow: Readonly<Record<Argument["kind"], readonly Argument["kind"][]>> = {
  positional: ["positional", "keyword", "list", "mapping"],
  keyword: ["keyword", "list", "mapping"],
  list: ["keyword", "mapping"],
  mapping: [],
};

function parseArgument(tokens: TokenReader): Argument {
  if (tokens.skip("operator", "*")) return { kind: "list", value: parseExpression(tokens) };
  if (tokens.skip("operator", "**")) return { kind: "mapping", value: parseExpression(tokens) };
  const { kind, text } = tokens.peek(1);
  if (!tokens.is("name") || kind !== "operator" || text !== "=") {
    return { kind: "positional", value: parseExpression(tokens) };
  }
  const name = tokens.next().text;
  tokens.next();
  return { kind: "keyword", name, value: parseExpression(tokens) };
}

/** Parses a name, a literal or an expression in brackets. */
export function parsePrimary(tokens: TokenReader): TemplateExpression {
  const token = tokens.next();
  const { kind, text } = token;
  if (kind === "name") {
    const value = constants.get(text);
    return value === undefined ? { kind: "name", name: text } : { kind: "constant", value };
  }
  if (kind === "string") {
    const parts = [text];
    while (tokens.is("string")) parts.push(tokens.next().text);
    return { kind: "text", text: parts.join("") };
  }
  if (kind === "integer" || kind === "float") return { kind, number: numberOf(text) };
  if (kind === "operator" && text === "(") return parseBracketed(tokens);
  if (kind === "operator" && text === "[") {
    return { kind: "list", items: parseItems(tokens, "]", () => parseExpression(tokens)) };
  }
  if (kind !== "operator" || text !== "{") {
    return tokens.fail(kind === "end" ? "the template ends inside a tag" : `unexpected '${text}'`, token);
  }
  const entries = parseItems(tokens, "}", (): [TemplateExpression, TemplateExpression] => {
    const key = parseExpression(tokens);
    tokens.expect("operator", ":");
    return [key, parseExpression(tokens)];
  });
  return { kind: "mapping", entries };
}

function parseBracketed(tokens: TokenReader): TemplateExpression {
  if (tokens.skip("operator", ")")) return { kind: "tuple", items: [] };
  const inner = parseTuple(tokens);
  tokens.expect("operator", ")");
  return inner;
}

/** Parses comma-separated items up to the closing bracket. A trailing comma is allowed. */
function parseItems<T>(tokens: TokenReader, closing: string, parseItem: () => T): T[] {
  const items: T[] = [];
  while (!tokens.is("operator", closing)) {
    if (items.length > 0) tokens.expect("operator", ",");
    if (!tokens.is("operator", closing)) items.push(parseItem());
  }
  tokens.next();
  return items;
}

const constants: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);

function numberOf(text: string): number {
  return Number(text.replaceAll("_", ""));
}
