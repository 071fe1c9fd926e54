import { codePointOf, codePoints, contains, oneCodePoint, union, type CodePoints } from "./code-points.ts";
import { chars, choiceOf, mapLeaves, repeat, sequenceOf, text, type Expression } from "./expression.ts";
import { larkCommon } from "./lark-common.ts";
import { LarkError } from "./lark-error.ts";
import { parseLark, type LarkGrammar, type LarkNode } from "./lark-syntax.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";

/** The terminals of a Lark grammar as expressions without references: a terminal is a regular language. */
export class LarkTerminals {
  readonly #lark: Pick<LarkGrammar, "terminals" | "imports">;
  /** Those that are being read: one that comes up again is made of itself. */
  readonly #open = new Set<string>();

  constructor(lark: Pick<LarkGrammar, "terminals" | "imports">) {
    this.#lark = lark;
  }

  named(name: string): Expression {
    const own = this.#lark.terminals.get(name);
    if (!own) return this.#imported(name);
    if (this.#open.has(name)) throw new LarkError(`the terminal '${name}' is made of itself`);
    this.#open.add(name);
    const made = this.of(own);
    this.#open.delete(name);
    return made;
  }

  of(node: LarkNode): Expression {
    switch (node.kind) {
      case "text":
        return node.anyCase ? inAnyCase(text(node.text)) : text(node.text);
      case "range":
        return rangeOf(node.first, node.last);
      case "regex":
        return regexTerminal(node.pattern, node.flags);
      case "terminal":
        return this.named(node.name);
      case "rule":
        throw new LarkError(`the rule '${node.name}' stands in a terminal`);
      case "sequence":
        return sequenceOf(node.items.map((item) => this.of(item)));
      case "choice":
        return choiceOf(node.options.map((option) => this.of(option)));
      case "repeat":
        return repeat(this.of(node.item), node.min, node.max);
    }
  }

  #imported(name: string): Expression {
    const original = this.#lark.imports.get(name);
    if (original === undefined) throw new LarkError(`there is no terminal '${name}'`);
    library ??= new LarkTerminals(parseLark(larkCommon));
    if (!library.#lark.terminals.has(original)) throw new LarkError(`common has no terminal '${original}'`);
    return library.named(original);
  }
}

let library: LarkTerminals | undefined;

function rangeOf(first: string, last: string): Expression {
  const ends = [codePointOf(first), codePointOf(last)] as const;
  if (ends[0] > ends[1]) throw new LarkError(`the range "${first}".."${last}" is empty`);
  return chars([ends]);
}

/** A regular expression as Python reads it: flag `s` lets the dot stand for line ends, `i` takes letters in any case. */
function regexTerminal(pattern: string, flags: string): Expression {
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

/** The pattern with `dot` for each dot that stands for any character. */
function withDots(pattern: string, dot: string): string {
  return pattern.replace(/\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\./g, (part) => (part === "." ? dot : part));
}

const lower = codePoints("az");
const upper = codePoints("AZ");

function inAnyCase(expression: Expression): Expression {
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
        if (contains(set, code)) others.push([[code + shift, code + shift]]);
      }
    }
  }
  return union(set, ...others);
}
