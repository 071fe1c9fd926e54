import {
  bracketed,
  choice,
  choiceOf,
  empty,
  isNever,
  never,
  quoted,
  repeat,
  rule,
  sequence,
  sequenceOf,
  type GrammarExpression,
} from "./expression.ts";

/** A grammar without a finite text, or with too many rules. */
export class GrammarError extends Error {
  override readonly name = "GrammarError";
}

/** Maximum number of rules: more slow down the sampling of every token. */
const maxRules = 20_000;

/** Repetitions up to this number are left to llama.cpp, which unrolls them into as many rules. Longer ones are built by doubling. */
const plainRepetitions = 32;

/**
 * A grammar under construction: named rules, and their GBNF as llama.cpp reads it (v0.5.0, `llama-grammar.cpp`). It never writes what that
 * parser refuses: left recursion, repetitions over 2,000, repetition of something that may be empty.
 */
export class Grammar {
  readonly #rules = new Map<string, GrammarExpression>();
  readonly #memo = new Map<string, GrammarExpression>();
  readonly #counters = new Map<string, number>();
  /** Adds a rule with a new name that begins with `hint`, and returns a reference to it. */
  define(hint: string, body: GrammarExpression): GrammarExpression {
    const name = this.#fresh(hint);
    this.#rules.set(name, body);
    return rule(name);
  }

  /** A reference to the rule for `key`, which is built on first use. `build` may refer to the same key recursively. */
  shared(key: string, hint: string, build: () => GrammarExpression): GrammarExpression {
    const known = this.#memo.get(key);
    if (known !== undefined) return known;
    const name = this.#fresh(hint);
    this.#memo.set(key, rule(name));
    this.#rules.set(name, never);
    const body = build();
    this.#rules.set(name, body);
    // An unsatisfiable rule is replaced by `never` immediately, so that callers can detect it.
    const result = isNever(body) ? never : rule(name);
    this.#memo.set(key, result);
    return result;
  }

  /**
   * The GBNF text whose start is `root`. Alternatives that can never end (a recursion without exit) are left out, so that a model cannot be
   * led into them.
   *
   * @throws {GrammarError} if no alternative is left.
   */
  toGbnf(root: GrammarExpression): string {
    const rules = this.#finiteRules();
    return new Writer(rules).write(finiteRoot(root, rules));
  }

  /** @throws {GrammarError} if no text can satisfy `root`. */
  check(root: GrammarExpression): void {
    finiteRoot(root, this.#finiteRules());
  }

  #fresh(hint: string): string {
    if (this.#rules.size > maxRules) throw new GrammarError(`the grammar would need more than ${maxRules} rules`);
    const base =
      hint
        .replaceAll(/[^A-Za-z0-9]+/g, "-")
        .replaceAll(/^-+|-+$/g, "")
        .slice(0, 40) || "rule";
    const count = (this.#counters.get(base) ?? 0) + 1;
    this.#counters.set(base, count);
    // Every name has a number, so that the hint "a-1" and the first "a" cannot collide; "root" is reserved for the start.
    return `${base}-${count}`;
  }

  /** The rules that can end, without their alternatives that cannot. */
  #finiteRules(): Map<string, GrammarExpression> {
    const finite = new Set<string>();
    const users = new Map<string, string[]>();
    for (const [name, body] of this.#rules) {
      for (const used of rulesIn(body)) {
        const known = users.get(used);
        if (known) known.push(name);
        else users.set(used, [name]);
      }
    }
    const todo = [...this.#rules.keys()];
    for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
      if (finite.has(name) || !ends(this.#rules.get(name) ?? never, finite)) continue;
      finite.add(name);
      todo.push(...(users.get(name) ?? []));
    }
    const rules = new Map<string, GrammarExpression>();
    for (const [name, body] of this.#rules) if (finite.has(name)) rules.set(name, withoutEndless(body, finite));
    return rules;
  }
}

/** @throws {GrammarError} if no text can satisfy `root`. */
function finiteRoot(root: GrammarExpression, rules: ReadonlyMap<string, GrammarExpression>): GrammarExpression {
  const finite = withoutEndless(root, new Set(rules.keys()));
  if (isNever(finite)) throw new GrammarError("no text can satisfy it");
  return finite;
}

/** The rules that an expression refers to, each once. */
function rulesIn(expression: GrammarExpression, found: Set<string> = new Set()): ReadonlySet<string> {
  if (expression.kind === "rule") found.add(expression.name);
  else if (expression.kind === "repeat") rulesIn(expression.item, found);
  else if (expression.kind === "sequence") for (const item of expression.items) rulesIn(item, found);
  else if (expression.kind === "choice") for (const option of expression.options) rulesIn(option, found);
  return found;
}

function ends(expression: GrammarExpression, finite: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case "rule":
      return finite.has(expression.name);
    case "sequence":
      return expression.items.every((item) => ends(item, finite));
    case "choice":
      return expression.options.some((option) => ends(option, finite));
    case "repeat":
      return expression.min === 0 || ends(expression.item, finite);
    default:
      return true;
  }
}

/** Returns the same object if nothing in it is endless. */
function withoutEndless(expression: GrammarExpression, finite: ReadonlySet<string>): GrammarExpression {
  const kept = (part: GrammarExpression): GrammarExpression => withoutEndless(part, finite);
  switch (expression.kind) {
    case "rule":
      return finite.has(expression.name) ? expression : never;
    case "sequence": {
      const items = expression.items.map(kept);
      return items.every((item, i) => item === expression.items[i]) ? expression : sequenceOf(items);
    }
    case "choice": {
      const options = expression.options.map(kept);
      return options.every((option, i) => option === expression.options[i]) ? expression : choiceOf(options);
    }
    case "repeat": {
      const item = kept(expression.item);
      return item === expression.item ? expression : repeat(item, expression.min, expression.max);
    }
    default:
      return expression;
  }
}

/** Writes rules, including those that are needed for long repetitions and for repetitions of items that may be empty. */
class Writer {
  readonly #rules: Map<string, GrammarExpression>;
  readonly #nullable = new Map<string, boolean>();
  readonly #names = new Map<string, string>();
  readonly #lines = new Map<string, string>();
  readonly #queue: string[] = [];

  constructor(rules: Map<string, GrammarExpression>) {
    this.#rules = rules;
  }

  write(root: GrammarExpression): string {
    this.#lines.set("root", "");
    this.#lines.set("root", this.#alternatives(root));
    for (let name = this.#queue.shift(); name !== undefined; name = this.#queue.shift()) {
      this.#lines.set(name, this.#alternatives(this.#rules.get(name) ?? never));
    }
    return [...this.#lines].map(([name, line]) => `${name} ::= ${line}\n`).join("");
  }

  #alternatives(expression: GrammarExpression): string {
    const options = expression.kind === "choice" ? expression.options : [expression];
    return options.map((option) => this.#items(option)).join(" | ");
  }

  #items(expression: GrammarExpression): string {
    return expression.kind === "sequence"
      ? expression.items.map((item) => this.#item(item)).join(" ")
      : this.#item(expression);
  }

  #item(expression: GrammarExpression): string {
    switch (expression.kind) {
      case "text":
        return quoted(expression.text);
      case "chars":
        return bracketed(expression.set);
      case "rule":
        return this.#reference(expression.name);
      case "repeat":
        return this.#repetition(expression.item, expression.min, expression.max);
      default:
        return `( ${this.#alternatives(expression)} )`;
    }
  }

  /** The name of a rule, or of the rule that it is an alias of. */
  #reference(name: string): string {
    const body = this.#rules.get(name);
    if (body?.kind === "rule" && body.name !== name) return this.#reference(body.name);
    if (!this.#lines.has(name)) {
      this.#lines.set(name, "");
      this.#queue.push(name);
    }
    return name;
  }

  #repetition(item: GrammarExpression, min: number, max: number | null): string {
    if (this.#isNullable(item)) {
      const solid = this.#withoutEmpty(item);
      return isNever(solid) ? quoted("") : this.#repetition(solid, 0, max);
    }
    if (min > plainRepetitions) {
      return this.#items(sequence(this.#power(item, min), repeat(item, 0, max === null ? null : max - min)));
    }
    if (max !== null && max - min > plainRepetitions) {
      return this.#items(sequence(repeat(item, min, min), this.#upTo(item, max - min)));
    }
    const isAtom = item.kind === "chars" || item.kind === "rule" || item.kind === "text";
    const atom = isAtom ? item : this.#named(item, "item");
    return `${this.#item(atom)}${suffix(min, max)}`;
  }

  /** `item` exactly `count` times, with about log2(count) rules. */
  #power(item: GrammarExpression, count: number): GrammarExpression {
    if (count <= plainRepetitions) return repeat(item, count, count);
    const half = Math.floor(count / 2);
    const twice = this.#named(this.#power(item, half), "times");
    return sequence(twice, twice, count % 2 === 1 ? item : empty);
  }

  /** `item` at most `count` times. The two alternatives never match the same number of items, so few parses are open at a time. */
  #upTo(item: GrammarExpression, count: number): GrammarExpression {
    if (count <= plainRepetitions) return repeat(item, 0, count);
    const half = Math.ceil(count / 2);
    const many = sequence(this.#power(item, half), this.#upTo(item, count - half));
    return this.#named(choice(this.#upTo(item, half - 1), many), "upto");
  }

  /** The rule for `body`; equal bodies share one rule. */
  #named(body: GrammarExpression, hint: string): GrammarExpression {
    const key = JSON.stringify(body);
    let name = this.#names.get(key);
    if (name === undefined) {
      name = `${hint}-x${this.#names.size + 1}`;
      this.#names.set(key, name);
      this.#rules.set(name, body);
    }
    return rule(name);
  }

  #isNullable(expression: GrammarExpression): boolean {
    switch (expression.kind) {
      case "text":
        return expression.text === "";
      case "chars":
        return false;
      case "sequence":
        return expression.items.every((item) => this.#isNullable(item));
      case "choice":
        return expression.options.some((option) => this.#isNullable(option));
      case "repeat":
        return expression.min === 0 || this.#isNullable(expression.item);
      case "rule": {
        const known = this.#nullable.get(expression.name);
        if (known !== undefined) return known;
        this.#nullable.set(expression.name, false);
        const body = this.#rules.get(expression.name);
        const nullable = body !== undefined && this.#isNullable(body);
        this.#nullable.set(expression.name, nullable);
        return nullable;
      }
    }
  }

  /** The texts of `expression` except the empty text. */
  #withoutEmpty(expression: GrammarExpression): GrammarExpression {
    if (!this.#isNullable(expression)) return expression;
    switch (expression.kind) {
      case "choice":
        return choice(...expression.options.map((option) => this.#withoutEmpty(option)));
      case "sequence":
        // Every item may be empty: the alternatives differ in the first item that is not.
        return choice(
          ...expression.items.map((item, i) => sequence(this.#withoutEmpty(item), ...expression.items.slice(i + 1))),
        );
      case "repeat":
        return repeat(this.#withoutEmpty(expression.item), 1, expression.max);
      case "rule":
        return this.#named(this.#withoutEmpty(this.#rules.get(expression.name) ?? never), "solid");
      default:
        return never;
    }
  }
}

function suffix(min: number, max: number | null): string {
  if (min === 0 && max === 1) return "?";
  if (max === null) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  return min === max ? `{${min}}` : `{${min},${max}}`;
}
