import type { Argument, Expression, FilterLink, Link, Operation } from "./syntax.ts";
import type { TokenReader } from "./token-reader.ts";

/**
 * Jinja's expressions, with its precedence: choice, `or`, `and`, `not`, comparison, `+ -`, `~`, `* / // %`, `**`, sign, and then the
 * links of a value (members, calls, filters, tests). Throws `TemplateSyntaxError`.
 */
export function parseExpression(tokens: TokenReader): Expression {
  return tokens.nested(() => {
    const chosen = parseCondition(tokens);
    if (!tokens.skip("name", "if")) return chosen;
    const test = parseCondition(tokens);
    const otherwise = tokens.skip("name", "else") ? parseExpression(tokens) : null;
    return { kind: "choice", test, chosen, otherwise };
  });
}

/** An expression, or several with commas between them, which make a tuple. `choices`: each may be a choice. */
export function parseTuple(tokens: TokenReader, choices = true): Expression {
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

/** An expression without `if`: used where a following `if` belongs to something else. */
export function parseCondition(tokens: TokenReader): Expression {
  return parseJoined(tokens, "or", () => parseJoined(tokens, "and", () => parseNot(tokens)));
}

function parseJoined(tokens: TokenReader, kind: "or" | "and", parseOperand: () => Expression): Expression {
  const first = parseOperand();
  if (!tokens.is("name", kind)) return first;
  const operands = [first];
  while (tokens.skip("name", kind)) operands.push(parseOperand());
  return { kind, operands };
}

function parseNot(tokens: TokenReader): Expression {
  if (!tokens.skip("name", "not")) return parseComparison(tokens);
  return { kind: "not", operand: tokens.nested(() => parseNot(tokens)) };
}

function parseComparison(tokens: TokenReader): Expression {
  const first = parseSum(tokens);
  const rest: Operation[] = [];
  for (let operator = comparison(tokens); operator !== null; operator = comparison(tokens)) {
    rest.push({ operator, operand: parseSum(tokens) });
  }
  return rest.length === 0 ? first : { kind: "comparison", first, rest };
}

/** Takes a comparing operator, if there is one. */
function comparison(tokens: TokenReader): string | null {
  if (tokens.is("operator", "==", "!=", "<", "<=", ">", ">=") || tokens.is("name", "in")) return tokens.next().text;
  const { kind, text } = tokens.peek(1);
  if (!tokens.is("name", "not") || kind !== "name" || text !== "in") return null;
  tokens.next();
  tokens.next();
  return "not in";
}

function parseSum(tokens: TokenReader): Expression {
  return parseArithmetic(tokens, ["+", "-"], parseConcatenation);
}

function parseConcatenation(tokens: TokenReader): Expression {
  const first = parseProduct(tokens);
  if (!tokens.is("operator", "~")) return first;
  const operands = [first];
  while (tokens.skip("operator", "~")) operands.push(parseProduct(tokens));
  return { kind: "concatenation", operands };
}

function parseProduct(tokens: TokenReader): Expression {
  return parseArithmetic(tokens, ["*", "/", "//", "%"], parsePower);
}

/** From the left, unlike in Python: `2 ** 3 ** 2` is 64. */
function parsePower(tokens: TokenReader): Expression {
  return parseArithmetic(tokens, ["**"], parseFiltered);
}

function parseArithmetic(
  tokens: TokenReader,
  operators: readonly string[],
  parseOperand: (tokens: TokenReader) => Expression,
): Expression {
  const first = parseOperand(tokens);
  const rest: Operation[] = [];
  while (tokens.is("operator", ...operators)) {
    rest.push({ operator: tokens.next().text, operand: parseOperand(tokens) });
  }
  return rest.length === 0 ? first : { kind: "arithmetic", first, rest };
}

/** A value with its filters and tests, which bind weaker than a sign: `-1 | abs` is 1. */
function parseFiltered(tokens: TokenReader): Expression {
  const base = parseSigned(tokens);
  const links: Link[] = [];
  for (;;) {
    if (tokens.skip("operator", "|")) links.push(parseFilter(tokens));
    else if (tokens.skip("name", "is")) links.push(parseTest(tokens));
    else if (links.length > 0 && tokens.is("operator", "(")) links.push({ kind: "call", args: parseArguments(tokens) });
    else return linked(base, links);
  }
}

function parseSigned(tokens: TokenReader): Expression {
  if (!tokens.is("operator", "+", "-")) return parsePostfix(tokens);
  const sign = tokens.next().text === "-" ? "-" : "+";
  return { kind: "sign", sign, operand: tokens.nested(() => parseSigned(tokens)) };
}

/** A value with its members and calls. */
function parsePostfix(tokens: TokenReader): Expression {
  const base = parsePrimary(tokens);
  const links: Link[] = [];
  for (;;) {
    if (tokens.skip("operator", ".")) links.push(parseMember(tokens));
    else if (tokens.skip("operator", "[")) links.push(parseSubscript(tokens));
    else if (tokens.is("operator", "(")) links.push({ kind: "call", args: parseArguments(tokens) });
    else return linked(base, links);
  }
}

function linked(base: Expression, links: readonly Link[]): Expression {
  if (links.length === 0) return base;
  if (base.kind !== "chain") return { kind: "chain", base, links };
  return { kind: "chain", base: base.base, links: [...base.links, ...links] };
}

/** The filters that follow `{% set name %}` and `{% filter %}`: `first | second(args)`. */
export function parseFilters(tokens: TokenReader): FilterLink[] {
  const filters = [parseFilter(tokens)];
  while (tokens.skip("operator", "|")) filters.push(parseFilter(tokens));
  return filters;
}

function parseFilter(tokens: TokenReader): FilterLink {
  const name = dottedName(tokens);
  return { kind: "filter", name, args: tokens.is("operator", "(") ? parseArguments(tokens) : [] };
}

/** A test's one argument needs no brackets: `x is divisibleby 3`. */
function parseTest(tokens: TokenReader): Link {
  const negated = tokens.skip("name", "not");
  const name = dottedName(tokens);
  if (tokens.is("operator", "(")) return { kind: "test", name, negated, args: parseArguments(tokens) };
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

/** The inside of `[…]` after a value; the opening bracket has been read. */
function parseSubscript(tokens: TokenReader): Link {
  const bounds: (Expression | null)[] = [];
  const bound = (): Expression | null => (tokens.is("operator", ":", "]") ? null : parseExpression(tokens));
  const first = bound();
  bounds.push(first);
  while (bounds.length < 3 && tokens.skip("operator", ":")) bounds.push(bound());
  if (bounds.length === 1 && first === null) tokens.fail("'[]' needs a key");
  tokens.expect("operator", "]");
  return bounds.length > 1 || first === null ? { kind: "slice", bounds } : { kind: "item", key: first };
}

/** The arguments of a call, brackets included. */
export function parseArguments(tokens: TokenReader): Argument[] {
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

/** A name, a literal, or something in brackets. */
export function parsePrimary(tokens: TokenReader): Expression {
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
  const entries = parseItems(tokens, "}", (): [Expression, Expression] => {
    const key = parseExpression(tokens);
    tokens.expect("operator", ":");
    return [key, parseExpression(tokens)];
  });
  return { kind: "mapping", entries };
}

function parseBracketed(tokens: TokenReader): Expression {
  if (tokens.skip("operator", ")")) return { kind: "tuple", items: [] };
  const inner = parseTuple(tokens);
  tokens.expect("operator", ")");
  return inner;
}

/** The items up to the closing bracket, with commas between them. A last comma is allowed. */
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
