import { choiceOf, empty, lengths, mapLeaves, repeat, sequence, sequenceOf, type Expression } from "./expression.ts";
import { Grammar } from "./grammar.ts";
import { LarkError } from "./lark-error.ts";
import { parseLark, type LarkGrammar, type LarkNode } from "./lark-syntax.ts";
import { LarkTerminals } from "./lark-terminals.ts";

/** How a text, or one character of a set, is written where a grammar is used: in a JSON string, with escapes. */
export interface Writing {
  /** Tells one way to write from another. */
  readonly key: string;
  readonly write: (leaf: Expression & { kind: "text" | "chars" }) => Expression;
}

/** Texts as they are. */
export const asItIs: Writing = { key: "", write: (leaf) => leaf };

/** The texts of a Lark grammar, in GBNF. @throws {LarkError} @throws {GrammarError} */
export function larkToGbnf(definition: string): string {
  const grammar = new Grammar();
  return grammar.toGbnf(larkExpression(definition, grammar, asItIs));
}

/**
 * The texts that a Lark grammar derives from its rule `start`, as rules of `grammar`. Terminals are not held to Lark's longest match: any
 * text that the rules derive is one.
 *
 * @throws {LarkError} for what is malformed or cannot be expressed; the message names it.
 */
export function larkExpression(definition: string, grammar: Grammar, writing: Writing): Expression {
  return new LarkCompiler(parseLark(definition), grammar, definition, writing).start();
}

class LarkCompiler {
  readonly #lark: LarkGrammar;
  readonly #terminals: LarkTerminals;
  readonly #grammar: Grammar;
  readonly #key: string;
  readonly #write: Writing["write"];
  readonly #nullable = new Map<string, boolean>();
  /** What `%ignore` lets stand behind every token. */
  #ignored: Expression = empty;

  constructor(lark: LarkGrammar, grammar: Grammar, definition: string, { key, write }: Writing) {
    this.#lark = lark;
    this.#terminals = new LarkTerminals(lark);
    this.#grammar = grammar;
    this.#key = `lark ${key} ${definition}`;
    this.#write = write;
  }

  start(): Expression {
    const { rules, ignored } = this.#lark;
    if (!rules.has("start")) throw new LarkError("there is no rule 'start'");
    for (const [name, body] of rules) this.#refuseHiddenLeftRecursion(name, body);
    if (ignored.length > 0) {
      const one = choiceOf(ignored.map((node) => this.#terminals.of(node)));
      this.#ignored = this.#shared("ignored", () => repeat(this.#written(one), 0, null));
    }
    return sequence(this.#ignored, this.#ruleNamed("start"));
  }

  #ruleNamed(name: string): Expression {
    const body = this.#lark.rules.get(name);
    if (!body) throw new LarkError(`there is no rule '${name}'`);
    return this.#shared(`rule ${name}`, () => this.#ruleBody(name, body));
  }

  #shared(name: string, build: () => Expression): Expression {
    return this.#grammar.shared(`${this.#key} ${name}`, `lark-${name}`, build);
  }

  /** GBNF knows no rule that begins with itself: `a: a x | y` is written as `y x*`. */
  #ruleBody(name: string, body: LarkNode): Expression {
    const further: Expression[] = [];
    const first: Expression[] = [];
    for (const option of optionsOf(body)) {
      const rest = afterItself(option, name);
      if (rest === null) first.push(this.#expression(option));
      else further.push(sequenceOf(rest.map((item) => this.#expression(item))));
    }
    return sequence(choiceOf(first), repeat(choiceOf(further), 0, null));
  }

  #expression(node: LarkNode): Expression {
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

  #written(expression: Expression): Expression {
    return mapLeaves(expression, (leaf) => (leaf.kind === "rule" ? leaf : this.#write(leaf)));
  }

  /** Recursion on the left by way of other rules, or behind what may be empty, cannot be written so simply. */
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

/** What follows where an alternative begins with the rule itself; null where it does not. */
function afterItself(option: LarkNode, name: string): readonly LarkNode[] | null {
  const [first, ...rest] = option.kind === "sequence" ? option.items : [option];
  return first?.kind === "rule" && first.name === name ? rest : null;
}
