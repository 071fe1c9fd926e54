/** A second opinion on GBNF, independent of the code that writes it: reads a grammar, tells whether a text is in it, makes texts. */

type Node =
  | { kind: "text"; characters: readonly string[] }
  | { kind: "class"; negated: boolean; ranges: readonly (readonly [number, number])[] }
  | { kind: "rule"; name: string }
  | { kind: "sequence"; items: readonly Node[] }
  | { kind: "choice"; options: readonly Node[] }
  | { kind: "repeat"; item: Node; min: number; max: number };

export class Gbnf {
  readonly #rules = new Map<string, Node>();
  readonly #depths = new Map<string, number>();

  constructor(text: string) {
    for (const line of text.split("\n").filter(Boolean)) {
      const [, name = "", body = ""] = /^([A-Za-z0-9-]+) ::= (.*)$/s.exec(line) ?? [];
      if (name === "") throw new Error(`not a rule: ${line}`);
      this.#rules.set(name, new Parser(body).parse());
    }
    this.#measure();
  }

  accepts(text: string): boolean {
    const characters = [...text];
    return this.#ends(this.#rule("root"), 0, characters, new Map()).has(characters.length);
  }

  /** A text of the grammar. `random` gives numbers from 0 (inclusive) to 1 (exclusive); the deeper, the sooner it comes to an end. */
  walk(random: () => number): string {
    return this.#walk(this.#rule("root"), random, 0);
  }

  #ends(node: Node, at: number, text: readonly string[], memo: Map<Node, Map<number, Set<number>>>): Set<number> {
    let known = memo.get(node);
    if (known === undefined) memo.set(node, (known = new Map<number, Set<number>>()));
    const done = known.get(at);
    if (done !== undefined) return done;
    const result = new Set<number>();
    known.set(at, result);
    for (const end of this.#endsOf(node, at, text, memo)) result.add(end);
    return result;
  }

  *#endsOf(
    node: Node,
    at: number,
    text: readonly string[],
    memo: Map<Node, Map<number, Set<number>>>,
  ): Generator<number> {
    switch (node.kind) {
      case "text":
        if (node.characters.every((character, i) => text[at + i] === character)) yield at + node.characters.length;
        return;
      case "class":
        if (text[at] !== undefined && matches(node, text[at])) yield at + 1;
        return;
      case "rule":
        yield* this.#ends(this.#rule(node.name), at, text, memo);
        return;
      case "choice":
        for (const option of node.options) yield* this.#ends(option, at, text, memo);
        return;
      case "sequence": {
        let ends = new Set([at]);
        for (const item of node.items) {
          ends = new Set([...ends].flatMap((end) => [...this.#ends(item, end, text, memo)]));
        }
        yield* ends;
        return;
      }
      case "repeat": {
        let ends = new Set([at]);
        const seen = new Set<number>();
        for (let count = 0; count <= node.max && ends.size > 0; count++) {
          if (count >= node.min) {
            const fresh = [...ends].filter((end) => !seen.has(end));
            if (fresh.length === 0) return;
            for (const end of fresh) seen.add(end);
            yield* fresh;
            ends = new Set(fresh);
          }
          ends = new Set([...ends].flatMap((end) => [...this.#ends(node.item, end, text, memo)]));
        }
      }
    }
  }

  #walk(node: Node, random: () => number, depth: number): string {
    switch (node.kind) {
      case "text":
        return node.characters.join("");
      case "class":
        return pick(node, random);
      case "rule":
        return this.#walk(this.#rule(node.name), random, depth + 1);
      case "sequence":
        return node.items.map((item) => this.#walk(item, random, depth)).join("");
      case "choice": {
        const options = depth > 30 ? this.#shallowest(node.options) : node.options;
        // Leaning to the first options, which are the short ones where a repetition is spelled out.
        const option = options[Math.floor(random() ** 2 * options.length)];
        return option === undefined ? "" : this.#walk(option, random, depth);
      }
      case "repeat": {
        const spread = Math.min(node.max - node.min, depth > 30 ? 0 : 6);
        const count = node.min + Math.floor(random() * (spread + 1));
        return Array.from({ length: count }, () => this.#walk(node.item, random, depth)).join("");
      }
    }
  }

  #shallowest(options: readonly Node[]): readonly Node[] {
    const least = Math.min(...options.map((option) => this.#depth(option)));
    return options.filter((option) => this.#depth(option) === least);
  }

  /** How many rules deep the shortest way to an end is, for every rule. */
  #measure(): void {
    for (let changed = true; changed;) {
      changed = false;
      for (const [name, body] of this.#rules) {
        const depth = 1 + this.#depth(body);
        if (depth >= (this.#depths.get(name) ?? Infinity)) continue;
        this.#depths.set(name, depth);
        changed = true;
      }
    }
    for (const name of this.#rules.keys()) if (!this.#depths.has(name)) throw new Error(`rule ${name} has no end`);
  }

  #depth(node: Node): number {
    switch (node.kind) {
      case "rule":
        return this.#depths.get(node.name) ?? Infinity;
      case "sequence":
        return Math.max(0, ...node.items.map((item) => this.#depth(item)));
      case "choice":
        return Math.min(...node.options.map((option) => this.#depth(option)));
      case "repeat":
        return node.min === 0 ? 0 : this.#depth(node.item);
      default:
        return 0;
    }
  }

  #rule(name: string): Node {
    const body = this.#rules.get(name);
    if (body === undefined) throw new Error(`no rule ${name}`);
    return body;
  }
}

function matches({ negated, ranges }: Node & { kind: "class" }, character: string): boolean {
  const value = character.codePointAt(0) ?? 0;
  return ranges.some(([first, last]) => first <= value && value <= last) !== negated;
}

function pick(node: Node & { kind: "class" }, random: () => number): string {
  if (node.negated) throw new Error("negated classes are not written");
  const [first, last] = node.ranges[Math.floor(random() * node.ranges.length)] ?? [63, 63];
  // Mostly from the start of a range: all of Unicode would make texts that nobody can read.
  const width = Math.min(last - first, random() < 0.1 ? last - first : 40);
  return String.fromCodePoint(first + Math.floor(random() * (width + 1)));
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#text.length) throw new Error(`unexpected ${this.#text.slice(this.#at)}`);
    return node;
  }

  #choice(): Node {
    const options = [this.#sequence()];
    while (this.#eat(/\|\s*/y)) options.push(this.#sequence());
    return { kind: "choice", options };
  }

  #sequence(): Node {
    const items: Node[] = [];
    for (;;) {
      this.#eat(/\s*/y);
      const item = this.#atom();
      if (item === null) return { kind: "sequence", items };
      items.push(this.#repeated(item));
    }
  }

  #atom(): Node | null {
    const name = this.#eat(/[A-Za-z0-9-]+/y);
    if (name) return { kind: "rule", name: name[0] };
    if (this.#eat(/"/y))
      return { kind: "text", characters: this.#characters(/"/y).map((value) => String.fromCodePoint(value)) };
    if (this.#eat(/\[/y)) return this.#class();
    if (this.#eat(/\(\s*/y)) {
      const inner = this.#choice();
      if (!this.#eat(/\)/y)) throw new Error("unclosed group");
      return inner;
    }
    return null;
  }

  #class(): Node {
    const negated = this.#eat(/\^/y) !== null;
    const ranges: [number, number][] = [];
    while (!this.#eat(/\]/y)) {
      const first = this.#character();
      ranges.push([first, this.#eat(/-/y) ? this.#character() : first]);
    }
    return { kind: "class", negated, ranges };
  }

  #characters(end: RegExp): number[] {
    const values: number[] = [];
    while (!this.#eat(end)) values.push(this.#character());
    return values;
  }

  #character(): number {
    const escape = this.#eat(/\\(?:x([0-9A-F]{2})|u([0-9A-F]{4})|U([0-9A-F]{8})|(.))/y);
    if (escape?.[4] !== undefined)
      return ({ n: 10, r: 13, t: 9, '"': 34, "\\": 92 } as Record<string, number>)[escape[4]] ?? -1;
    if (escape) return Number.parseInt(escape[1] ?? escape[2] ?? escape[3] ?? "", 16);
    const plain = this.#eat(/[^\\]/uy);
    if (plain === null) throw new Error(`bad character at ${this.#text.slice(this.#at)}`);
    return plain[0].codePointAt(0) ?? 0;
  }

  #repeated(item: Node): Node {
    const found = this.#eat(/([*+?])|\{(\d+)(,?)(\d*)\}/y);
    if (found === null) return item;
    const [, sign, min = "0", comma, max] = found;
    if (sign !== undefined)
      return { kind: "repeat", item, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity };
    return {
      kind: "repeat",
      item,
      min: Number(min),
      max: comma === "" ? Number(min) : max === "" ? Infinity : Number(max),
    };
  }

  #eat(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at += found[0].length;
    return found;
  }
}
