import { type CodePoints, complement, everyCodePoint, union } from "./code-points.ts";
import { GbnfError } from "./grammar-errors.ts";

/** llama.cpp's limit (v0.5.0, `MAX_REPETITION_THRESHOLD`) for a repetition and for the number of rules that it multiplies. */
const maxRepetitions = 2000;

interface GbnfLimits {
  /** Maximum nesting of parentheses: llama.cpp's parser is recursive. */
  readonly depth: number;
  /** Maximum number of characters, classes and references with repetitions written out, as llama.cpp does it: 8 bytes each. */
  readonly elements: number;
}

export interface GbnfRules {
  readonly root: GbnfRule;
  readonly rules: readonly GbnfRule[];
  /** As in `GbnfLimits`. */
  readonly elements: number;
  /** The names between `<` and `>`: tokens of a model. */
  readonly tokenNames: ReadonlySet<string>;
}

/**
 * Parses a GBNF text into rules as llama.cpp does (v0.5.0, `llama-grammar.cpp`): groups and repetitions become rules of their own.
 *
 * @throws {GbnfError} if the text is malformed, refers to an undefined rule, or is too large.
 */
export function readGbnf(text: string, limits: GbnfLimits): GbnfRules {
  return new Reader(text, limits).read();
}

class Reader {
  readonly #text: string;
  readonly #limits: GbnfLimits;
  readonly #named = new Map<string, GbnfRule>();
  readonly #defined = new Set<string>();
  readonly #rules: GbnfRule[] = [];
  #at = 0;
  #depth = 0;
  #elements = 0;
  readonly #tokenNames = new Set<string>();

  constructor(text: string, limits: GbnfLimits) {
    this.#text = text;
    this.#limits = limits;
  }

  read(): GbnfRules {
    this.#space(true);
    while (this.#at < this.#text.length) this.#rule();
    for (const name of this.#named.keys())
      if (!this.#defined.has(name)) throw new GbnfError(`there is no rule '${name}'`);
    const root = this.#named.get("root");
    if (!root) throw new GbnfError("there is no rule 'root'");
    return { root, rules: this.#rules, elements: this.#elements, tokenNames: this.#tokenNames };
  }

  #rule(): void {
    const name = this.#eat(/[A-Za-z0-9-]+/y);
    if (name === null) throw this.#fail("the name of a rule was expected");
    this.#space(false);
    if (!this.#skip("::=")) throw this.#fail(`'::=' was expected after the name '${name}'`);
    this.#space(true);
    const rule = this.#ruleNamed(name);
    rule.options = this.#alternatives(name, false);
    this.#defined.add(name);
    if (this.#at < this.#text.length && this.#eat(/\r\n?|\n/y) === null)
      throw this.#fail("the end of a line was expected");
    this.#space(true);
  }

  #alternatives(name: string, nested: boolean): GbnfRule["options"] {
    const options = [linked(this.#sequence(name, nested))];
    while (this.#skip("|")) {
      this.#space(true);
      options.push(linked(this.#sequence(name, nested)));
    }
    return options;
  }

  #sequence(name: string, nested: boolean): readonly RuleItem[] {
    const items: RuleItem[] = [];
    /** Start of the last element, which a repetition applies to, and the number of rules that it represents. */
    let last = 0;
    let weight = 1;
    for (;;) {
      const times = this.#repetition(nested);
      if (times !== null) {
        weight = this.#repeat(items, last, weight, times, name);
        continue;
      }
      const rulesBefore = this.#rules.length;
      const start = items.length;
      if (!this.#part(items, name)) return items;
      last = start;
      weight = Math.max(1, this.#rules.length - rulesBefore);
      this.#count(items, start, 1);
      this.#space(nested);
    }
  }

  /** Reads one element. Returns false if there is none. */
  #part(items: RuleItem[], name: string): boolean {
    switch (this.#text[this.#at]) {
      case '"':
        this.#at++;
        this.#literal(items);
        return true;
      case "[":
        this.#at++;
        this.#class(items);
        return true;
      case ".":
        this.#at++;
        items.push({ kind: "chars", set: everyCodePoint });
        return true;
      case "<":
      case "!":
        items.push(this.#token());
        return true;
      case "(":
        items.push({ kind: "rule", rule: this.#group(name) });
        return true;
      default: {
        const reference = this.#eat(/[A-Za-z0-9-]+/y);
        if (reference === null) return false;
        items.push({ kind: "rule", rule: this.#ruleNamed(reference) });
        return true;
      }
    }
  }

  #token(): RuleItem {
    const written = this.#eat(/!?<(?:\[\d+\]|[^[>][^>]*)>/y);
    if (written === null) throw this.#fail("a token in <…> was expected");
    const negated = written.startsWith("!");
    const name = written.slice(negated ? 2 : 1, -1);
    this.#tokenNames.add(name);
    return { kind: "token", name, negated };
  }

  #group(name: string): GbnfRule {
    if (++this.#depth > this.#limits.depth)
      throw new GbnfError(`its parentheses are nested more than ${this.#limits.depth} deep`);
    this.#at++;
    this.#space(true);
    const rule = this.#add(name);
    rule.options = this.#alternatives(name, true);
    if (!this.#skip(")")) throw this.#fail("')' was expected");
    this.#depth--;
    return rule;
  }

  #literal(items: RuleItem[]): void {
    let text = "";
    while (!this.#skip('"')) text += String.fromCodePoint(this.#character());
    if (text !== "") items.push({ kind: "text", text });
  }

  #class(items: RuleItem[]): void {
    const negated = this.#skip("^");
    const ranges: (readonly [number, number])[] = [];
    while (!this.#skip("]")) {
      const first = this.#character();
      const isRange = this.#text[this.#at] === "-" && this.#text[this.#at + 1] !== "]";
      if (isRange) this.#at++;
      ranges.push([first, isRange ? this.#character() : first]);
    }
    // llama.cpp reads an empty class as nothing.
    if (ranges.length > 0) items.push({ kind: "chars", set: negated ? complement(union(ranges)) : union(ranges) });
  }

  #character(): number {
    const escape = this.#eat(/\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tnr"\\[\]-])/y);
    if (escape !== null) {
      const value = { t: 9, n: 10, r: 13 }[escape[1] ?? ""];
      if (value !== undefined) return value;
      const code = escape.length > 2 ? Number.parseInt(escape.slice(2), 16) : (escape.codePointAt(1) ?? 0);
      if (code > 0x10ffff) throw this.#fail(`'${escape}' is not a character`);
      return code;
    }
    if (this.#text[this.#at] === "\\") throw this.#fail("an unknown escape");
    const value = this.#text.codePointAt(this.#at);
    if (value === undefined) throw new GbnfError("it ends within a text or a class");
    this.#at += value > 0xffff ? 2 : 1;
    return value;
  }

  /** `*`, `+`, `?` or `{…}`; max null: unlimited. */
  #repetition(nested: boolean): { readonly min: number; readonly max: number | null } | null {
    const sign = this.#eat(/[*+?]/y);
    if (sign !== null) {
      this.#space(nested);
      return { min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : null };
    }
    if (!this.#skip("{")) return null;
    this.#space(nested);
    const min = this.#number(nested);
    let max: number | null = min;
    if (this.#skip(",")) {
      this.#space(nested);
      max = /\d/.test(this.#text[this.#at] ?? "") ? this.#number(nested) : null;
    }
    if (!this.#skip("}")) throw this.#fail("'}' was expected");
    this.#space(nested);
    // llama.cpp would repeat it 2^64 times.
    if (max !== null && max < min) throw new GbnfError(`{${min},${max}} is not a valid repetition`);
    if (min > maxRepetitions) throw new GbnfError(`it repeats more than ${maxRepetitions} times`);
    return { min, max: max !== null && max > maxRepetitions ? null : max };
  }

  #number(nested: boolean): number {
    const digits = this.#eat(/\d+/y);
    if (digits === null) throw this.#fail("a number was expected");
    this.#space(nested);
    return Number(digits);
  }

  /** `S{m,n}` becomes m times S, followed by n - m nested rules: `S1 ::= S |`, `S2 ::= S S1 |`, … */
  #repeat(
    items: RuleItem[],
    from: number,
    weight: number,
    { min, max }: { readonly min: number; readonly max: number | null },
    name: string,
  ): number {
    const part = items.slice(from);
    if (part.length === 0) throw this.#fail("a repetition of nothing");
    const total = max !== null && max > 0 ? max : Math.max(1, min);
    if (weight * total > maxRepetitions)
      throw new GbnfError(`a repetition expands to more than ${maxRepetitions} rules`);
    const optional = max === null ? 1 : max - min;
    this.#count(part, 0, Math.max(0, min - 1) + optional);
    if (min === 0) items.length = from;
    for (let i = 1; i < min; i++) for (const item of part) items.push(item);
    let rest: GbnfRule | undefined;
    for (let i = 0; i < optional; i++) {
      const rule = this.#add(name);
      const further = max === null ? rule : rest;
      rule.options = [linked(further ? [...part, { kind: "rule", rule: further }] : part), null];
      rest = rule;
    }
    if (rest) items.push({ kind: "rule", rule: rest });
    return weight * total;
  }

  #ruleNamed(name: string): GbnfRule {
    let rule = this.#named.get(name);
    if (!rule) this.#named.set(name, (rule = this.#add(name)));
    return rule;
  }

  #add(name: string): GbnfRule {
    const rule = { name, options: [] };
    this.#rules.push(rule);
    return rule;
  }

  #count(items: readonly RuleItem[], from: number, times: number): void {
    let elements = 0;
    for (let i = from; i < items.length; i++) {
      const item = items[i];
      elements += item?.kind === "text" ? item.text.length : item?.kind === "chars" ? 2 * item.set.length : 1;
    }
    this.#elements += elements * times;
    if (this.#elements > this.#limits.elements)
      throw new GbnfError(`with its repetitions written out it has more than ${this.#limits.elements} elements`);
  }

  #space(newlines: boolean): void {
    this.#eat(newlines ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y);
  }

  #skip(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #eat(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return null;
    this.#at += found[0].length;
    return found[0];
  }

  #fail(what: string): GbnfError {
    const lines = this.#text.slice(0, this.#at).split("\n");
    return new GbnfError(`${what} (line ${lines.length}, character ${(lines.at(-1)?.length ?? 0) + 1})`);
  }
}

/**
 * A position in a rule of a grammar, as in llama.cpp: the element that is next. `following` returns the position after it in the same
 * alternative.
 */
export type RulePosition = CharsPosition | TextPosition | ReferencePosition | TokenPosition;

/** One character of a set. */
interface CharsPosition {
  readonly kind: "chars";
  readonly set: CodePoints;
  readonly next: RulePosition | null;
}

/** A text, from one of its characters on. */
interface TextPosition {
  readonly kind: "text";
  readonly text: string;
  /** In UTF-16 code units. */
  readonly at: number;
  readonly next: RulePosition | null;
  /** The position after this character, once it was computed. */
  cachedNext?: RulePosition;
}

interface ReferencePosition {
  readonly kind: "rule";
  readonly rule: GbnfRule;
  readonly next: RulePosition | null;
}

/** One token of the model, named by the text between `<` and `>`, or any other token. */
export interface TokenPosition {
  readonly kind: "token";
  readonly name: string;
  readonly negated: boolean;
  readonly next: RulePosition | null;
}

/** The first positions of a rule's alternatives; null for an empty alternative. */
export interface GbnfRule {
  readonly name: string;
  options: readonly (RulePosition | null)[];
}

/** An element of an alternative. */
export type RuleItem =
  | { readonly kind: "chars"; readonly set: CodePoints }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "rule"; readonly rule: GbnfRule }
  | { readonly kind: "token"; readonly name: string; readonly negated: boolean };

/** The first position of an alternative; null if it is empty. */
export function linked(items: readonly RuleItem[]): RulePosition | null {
  return items.reduceRight<RulePosition | null>(
    (next, item) => (item.kind === "text" ? { ...item, at: 0, next } : { ...item, next }),
    null,
  );
}

/** The position after one character, rule or token; null at the end of the alternative. Always the same object for the same position. */
export function following(place: RulePosition): RulePosition | null {
  if (place.kind !== "text") return place.next;
  const at = place.at + (valueAt(place) > 0xffff ? 2 : 1);
  if (at === place.text.length) return place.next;
  return (place.cachedNext ??= { kind: "text", text: place.text, at, next: place.next });
}

function valueAt({ text, at }: TextPosition): number {
  return text.codePointAt(at) ?? 0;
}

/** A rule that another rule begins with, and what follows it there. */
interface Beginning {
  readonly rule: GbnfRule;
  readonly rest: RulePosition | null;
}

/**
 * Refuses left-recursive rules in which something follows the recursion, because their stacks would grow without limit: `a ::= a "x" |
 * "y"`, also indirectly and after rules that may be empty, which llama.cpp does not detect. Linear and not recursive (Tarjan 1972: strongly
 * connected components).
 *
 * @throws {GbnfError} with the rule's name.
 */
export function refuseLeftRecursion(rules: readonly GbnfRule[]): void {
  const empty = rulesThatMayBeEmpty(rules);
  const isPassed = (rule: GbnfRule): boolean => empty.has(rule);
  const found = new Map<GbnfRule, { order: number; low: number; group: number | null }>();
  const open: GbnfRule[] = [];
  let groups = 0;
  for (const start of rules) {
    if (found.has(start)) continue;
    const path: { rule: GbnfRule; first: readonly Beginning[]; at: number; node: { order: number; low: number } }[] =
      [];
    const enter = (rule: GbnfRule): void => {
      const node = { order: found.size, low: found.size, group: null };
      found.set(rule, node);
      open.push(rule);
      path.push({ rule, first: beginningsOf(rule, isPassed), at: 0, node });
    };
    enter(start);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const rule = top.first[top.at++]?.rule;
      if (rule !== undefined) {
        const known = found.get(rule);
        if (!known) enter(rule);
        else if (known.group === null) top.node.low = Math.min(top.node.low, known.order);
        continue;
      }
      path.pop();
      const outer = path.at(-1);
      if (outer) outer.node.low = Math.min(outer.node.low, top.node.low);
      if (top.node.low !== top.node.order) continue;
      for (let member = open.pop(); member; member = open.pop()) {
        const node = found.get(member);
        if (node) node.group = groups;
        if (member === top.rule) break;
      }
      groups++;
    }
  }
  for (const rule of rules)
    for (const { rule: first, rest } of beginningsOf(rule, isPassed))
      if (rest !== null && found.get(first)?.group === found.get(rule)?.group) throw beginsWithItself(rule);
}

function beginsWithItself({ name }: GbnfRule): GbnfError {
  return new GbnfError(`the rule '${name}' begins with itself`);
}

/**
 * The rules that a rule's texts may begin with, with repetitions. `isPassed`: the rule may be empty, so that the text may also begin with
 * the next one.
 */
function beginningsOf(rule: GbnfRule, isPassed: (rule: GbnfRule) => boolean): readonly Beginning[] {
  const beginnings: Beginning[] = [];
  for (const option of rule.options) {
    for (let place = option; place?.kind === "rule"; place = place.next) {
      beginnings.push({ rule: place.rule, rest: place.next });
      if (!isPassed(place.rule)) break;
    }
  }
  return beginnings;
}

function rulesThatMayBeEmpty(rules: readonly GbnfRule[]): ReadonlySet<GbnfRule> {
  const empty = new Set<GbnfRule>();
  /** Alternatives that may be empty if this rule may be, and what follows the rule there. */
  const waiting = new Map<GbnfRule, { readonly of: GbnfRule; readonly rest: RulePosition | null }[]>();
  const todo = rules.flatMap((of) => of.options.map((rest) => ({ of, rest })));
  for (let option = todo.pop(); option; option = todo.pop()) {
    let { rest } = option;
    while (rest?.kind === "rule" && empty.has(rest.rule)) rest = rest.next;
    if (rest === null) {
      if (empty.has(option.of)) continue;
      empty.add(option.of);
      for (const other of waiting.get(option.of) ?? []) todo.push(other);
      waiting.delete(option.of);
    } else if (rest.kind === "rule") {
      const others = waiting.get(rest.rule);
      const other = { of: option.of, rest: rest.next };
      if (others) others.push(other);
      else waiting.set(rest.rule, [other]);
    }
  }
  return empty;
}
