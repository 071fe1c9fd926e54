import {
  chars,
  choiceOf,
  empty,
  type GrammarExpression,
  lengths,
  literal,
  mapLeaves,
  repeat,
  sequence,
  sequenceOf,
} from "./expression.ts";
import { Grammar } from "./grammar.ts";
import { LarkError } from "./grammar-errors.ts";
import { type LarkGrammar, type LarkNode, parseLark } from "./lark-syntax.ts";
import { codePointOf, codePoints, type CodePoints, includesCodePoint, oneCodePoint, union } from "./code-points.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";

/** How a text or a character of a set is written where the grammar is used, for example with escapes in a JSON string. */
interface Writing {
  /** Distinguishes the encodings within one grammar. */
  readonly key: string;
  readonly write: (leaf: GrammarExpression & { kind: "text" | "chars" }) => GrammarExpression;
}

/** Text without escapes. */
const asItIs: Writing = { key: "", write: (leaf) => leaf };

/** The GBNF of a Lark grammar. @throws {LarkError} @throws {GrammarError} */
export function larkToGbnf(definition: string): string {
  const grammar = new Grammar();
  return grammar.toGbnf(larkExpression(definition, grammar, asItIs));
}

/**
 * The texts that a Lark grammar derives from its rule `start`, as rules of `grammar`. Lark's longest match for terminals does not apply:
 * every text that the rules derive is included.
 *
 * @throws {LarkError} for what is malformed or unsupported; the message names it.
 */
export function larkExpression(definition: string, grammar: Grammar, writing: Writing): GrammarExpression {
  return new LarkCompiler(parseLark(definition), grammar, definition, writing).start();
}

class LarkCompiler {
  readonly #lark: LarkGrammar;
  readonly #terminals: LarkTerminals;
  readonly #grammar: Grammar;
  readonly #key: string;
  readonly #write: Writing["write"];
  readonly #nullable = new Map<string, boolean>();
  /** What `%ignore` allows after every token. */
  #ignored: GrammarExpression = empty;

  constructor(lark: LarkGrammar, grammar: Grammar, definition: string, { key, write }: Writing) {
    this.#lark = lark;
    this.#terminals = new LarkTerminals(lark);
    this.#grammar = grammar;
    this.#key = `lark ${key} ${definition}`;
    this.#write = write;
  }

  start(): GrammarExpression {
    const { rules, ignored } = this.#lark;
    if (!rules.has("start")) throw new LarkError("there is no rule 'start'");
    for (const [name, body] of rules) this.#refuseHiddenLeftRecursion(name, body);
    if (ignored.length > 0) {
      const one = choiceOf(ignored.map((node) => this.#terminals.of(node)));
      this.#ignored = this.#shared("ignored", () => repeat(this.#written(one), 0, null));
    }
    return sequence(this.#ignored, this.#ruleNamed("start"));
  }

  #ruleNamed(name: string): GrammarExpression {
    const body = this.#lark.rules.get(name);
    if (!body) throw new LarkError(`there is no rule '${name}'`);
    return this.#shared(`rule ${name}`, () => this.#ruleBody(name, body));
  }

  #shared(name: string, build: () => GrammarExpression): GrammarExpression {
    return this.#grammar.shared(`${this.#key} ${name}`, `lark-${name}`, build);
  }

  /** GBNF has no left recursion: `a: a x | y` is written as `y x*`. */
  #ruleBody(name: string, body: LarkNode): GrammarExpression {
    const further: GrammarExpression[] = [];
    const first: GrammarExpression[] = [];
    for (const option of optionsOf(body)) {
      const rest = afterItself(option, name);
      if (rest === null) first.push(this.#expression(option));
      else further.push(sequenceOf(rest.map((item) => this.#expression(item))));
    }
    return sequence(choiceOf(first), repeat(choiceOf(further), 0, null));
  }

  #expression(node: LarkNode): GrammarExpression {
    switch (node.kind) {
      case "rule":
        return this.#ruleNamed(node.name);
      case "sequence":
        return sequenceOf(node.items.map((item) => this.#expression(item)));
      case "choice":
        return choiceOf(node.options.map((option) => this.#expression(option)));
      case "repeat":
        return repeat(this.#expression(node.item), node.min, node.max);
      case "terminal": {
        const token = this.#shared(`terminal ${node.name}`, () => this.#written(this.#terminals.named(node.name)));
        return sequence(token, this.#ignored);
      }
      default:
        return sequence(this.#written(this.#terminals.of(node)), this.#ignored);
    }
  }

  #written(expression: GrammarExpression): GrammarExpression {
    return mapLeaves(expression, (leaf) => (leaf.kind === "rule" ? leaf : this.#write(leaf)));
  }

  /** Indirect left recursion, and left recursion after something that may be empty, is not rewritten but refused. */
  #refuseHiddenLeftRecursion(name: string, body: LarkNode): void {
    const seen = new Set<string>();
    const todo = optionsOf(body).flatMap((option) => {
      const rest = afterItself(option, name);
      return rest === null ? this.#beginnings(option) : rest.every((item) => this.#mayBeEmpty(item)) ? [name] : [];
    });
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      if (next === name) throw new LarkError(`the rule '${name}' begins with itself by way of others`);
      if (seen.has(next)) continue;
      seen.add(next);
      const other = this.#lark.rules.get(next);
      if (other) todo.push(...this.#beginnings(other));
    }
  }

  /** The rules that a text of this node may begin with. */
  #beginnings(node: LarkNode): string[] {
    switch (node.kind) {
      case "rule":
        return [node.name];
      case "choice":
        return node.options.flatMap((option) => this.#beginnings(option));
      case "repeat":
        return this.#beginnings(node.item);
      case "sequence": {
        const end = node.items.findIndex((item) => !this.#mayBeEmpty(item));
        return node.items.slice(0, end === -1 ? undefined : end + 1).flatMap((item) => this.#beginnings(item));
      }
      default:
        return [];
    }
  }

  #mayBeEmpty(node: LarkNode): boolean {
    switch (node.kind) {
      case "rule": {
        const known = this.#nullable.get(node.name);
        if (known !== undefined) return known;
        this.#nullable.set(node.name, false);
        const body = this.#lark.rules.get(node.name);
        const nullable = body !== undefined && this.#mayBeEmpty(body);
        this.#nullable.set(node.name, nullable);
        return nullable;
      }
      case "sequence":
        return node.items.every((item) => this.#mayBeEmpty(item));
      case "choice":
        return node.options.some((option) => this.#mayBeEmpty(option));
      case "repeat":
        return node.min === 0 || this.#mayBeEmpty(node.item);
      default:
        return lengths(this.#terminals.of(node)).min === 0;
    }
  }
}

function optionsOf(node: LarkNode): readonly LarkNode[] {
  return node.kind === "choice" ? node.options.flatMap(optionsOf) : [node];
}

/** What follows the rule itself in an alternative that begins with it; null for any other alternative. */
function afterItself(option: LarkNode, name: string): readonly LarkNode[] | null {
  const [first, ...rest] = option.kind === "sequence" ? option.items : [option];
  return first?.kind === "rule" && first.name === name ? rest : null;
}

/**
 * The terminals of Lark's library `common`, in Lark's syntax (https://github.com/lark-parser/lark/blob/master/lark/grammars/common.lark).
 * Those with look-around are rewritten without it.
 */
const larkCommon: string = String.raw`
DIGIT: "0".."9"
HEXDIGIT: "a".."f" | "A".."F" | DIGIT
INT: DIGIT+
SIGNED_INT: ["+" | "-"] INT
DECIMAL: INT "." INT? | "." INT
_EXP: ("e" | "E") SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: ["+" | "-"] FLOAT
NUMBER: FLOAT | INT
SIGNED_NUMBER: ["+" | "-"] NUMBER
ESCAPED_STRING: /"([^"\\\n]|\\[^\n])*"/
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: UCASE_LETTER | LCASE_LETTER
WORD: LETTER+
CNAME: ("_" | LETTER) ("_" | LETTER | DIGIT)*
WS_INLINE: (" " | /\t/)+
WS: /[ \t\f\r\n]/+
CR: /\r/
LF: /\n/
NEWLINE: (CR? LF)+
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
`;

/** The terminals of a Lark grammar as expressions without references: a terminal is a regular language. */
class LarkTerminals {
  readonly #lark: Pick<LarkGrammar, "terminals" | "imports">;
  /** The terminals being expanded, to detect recursion. */
  readonly #open = new Set<string>();

  constructor(lark: Pick<LarkGrammar, "terminals" | "imports">) {
    this.#lark = lark;
  }

  named(name: string): GrammarExpression {
    const own = this.#lark.terminals.get(name);
    if (!own) return this.#imported(name);
    if (this.#open.has(name)) throw new LarkError(`the terminal '${name}' refers to itself`);
    this.#open.add(name);
    const made = this.of(own);
    this.#open.delete(name);
    return made;
  }

  of(node: LarkNode): GrammarExpression {
    switch (node.kind) {
      case "text":
        return node.anyCase ? inAnyCase(literal(node.text)) : literal(node.text);
      case "range":
        return rangeOf(node.first, node.last);
      case "regex":
        return regexTerminal(node.pattern, node.flags);
      case "terminal":
        return this.named(node.name);
      case "rule":
        throw new LarkError(`the rule '${node.name}' is used in a terminal`);
      case "sequence":
        return sequenceOf(node.items.map((item) => this.of(item)));
      case "choice":
        return choiceOf(node.options.map((option) => this.of(option)));
      case "repeat":
        return repeat(this.of(node.item), node.min, node.max);
    }
  }

  #imported(name: string): GrammarExpression {
    const original = this.#lark.imports.get(name);
    if (original === undefined) throw new LarkError(`there is no terminal '${name}'`);
    library ??= new LarkTerminals(parseLark(larkCommon));
    if (!library.#lark.terminals.has(original)) throw new LarkError(`common has no terminal '${original}'`);
    return library.named(original);
  }
}

let library: LarkTerminals | undefined;

function rangeOf(first: string, last: string): GrammarExpression {
  const ends = [codePointOf(first), codePointOf(last)] as const;
  if (ends[0] > ends[1]) throw new LarkError(`the range "${first}".."${last}" is empty`);
  return chars([ends]);
}

/** A regular expression in Python's syntax: with flag `s` the dot includes line ends, with `i` letters match in either case. */
function regexTerminal(pattern: string, flags: string): GrammarExpression {
  const other = [...flags].find((flag) => !"imsu".includes(flag));
  if (other !== undefined) throw new LarkError(`the flag '${other}' of /${pattern}/ is not supported`);
  try {
    const expression = regexExpression(withDots(pattern, flags.includes("s") ? "[\\s\\S]" : "[^\\n]"), "whole");
    return flags.includes("i") ? inAnyCase(expression) : expression;
  } catch (error) {
    if (error instanceof RegexError) throw new LarkError(`/${pattern}/: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Replaces each dot that matches any character by `dot`. */
function withDots(pattern: string, dot: string): string {
  return pattern.replace(/\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]?|\./g, (part) => (part === "." ? dot : part));
}

const lower = codePoints("az");
const upper = codePoints("AZ");

function inAnyCase(expression: GrammarExpression): GrammarExpression {
  return mapLeaves(expression, (leaf) => {
    if (leaf.kind === "rule") return leaf;
    if (leaf.kind === "chars") return chars(bothCases(leaf.set));
    return sequenceOf([...leaf.text].map((character) => chars(bothCases(oneCodePoint(character)))));
  });
}

/** The set with both cases of its Latin letters. */
function bothCases(set: CodePoints): CodePoints {
  const others: CodePoints[] = [];
  for (const [from, shift] of [[lower, -0x20] as const, [upper, 0x20] as const]) {
    for (const [first, last] of from) {
      for (let code = first; code <= last; code++) {
        if (includesCodePoint(set, code)) others.push([[code + shift, code + shift]]);
      }
    }
  }
  return union(set, ...others);
}
