import { codePointOf, type CodePoints, union } from "./code-points.ts";
import { chars, choiceOf, empty, type GrammarExpression, sequence, sequenceOf, literal } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/** Fewer texts are written as plain alternatives: the sampler can follow that many parses, and the grammar stays readable. */
const maxPlainTexts = 32;

/** A shared part of at least this size becomes a rule; a smaller one is repeated. */
const ruleWeight = 8;

/** Maximum nesting of groups before one becomes a rule. */
const groupDepth = 16;

/**
 * One of many texts (`enum`, `guided_choice`), with few parses open at a time: common prefixes and common suffixes are written once (the
 * texts' minimal acyclic automaton; Daciuk et al., 2000).
 */
export function textChoice(grammar: Grammar, texts: readonly string[]): GrammarExpression {
  if (texts.length < maxPlainTexts) return choiceOf(texts.map(literal));
  // By UTF-16 code units, so that texts with a common prefix are adjacent.
  const sorted = [...new Set(texts)].sort();
  return new TextTree(grammar, sorted).expression();
}

/** A state: what may follow, and whether a text may end here. */
interface Node {
  readonly id: number;
  readonly ends: boolean;
  readonly edges: readonly Edge[];
  readonly weight: number;
  uses: number;
  written?: GrammarExpression;
}

/** The characters of a transition, the text that follows each of them, and the next state. */
interface Edge {
  set: CodePoints;
  readonly tail: string;
  readonly to: Node;
}

class TextTree {
  readonly #grammar: Grammar;
  readonly #texts: readonly string[];
  readonly #nodes = new Map<string, Node>();

  constructor(grammar: Grammar, sorted: readonly string[]) {
    this.#grammar = grammar;
    this.#texts = sorted;
  }

  expression(): GrammarExpression {
    return this.#write(this.#node(0, this.#texts.length, 0), 0);
  }

  /** The state of the texts from `low` up to `high`, which are equal before `at`. */
  #node(low: number, high: number, at: number): Node {
    const ends = this.#texts[low]?.length === at;
    const edges = new Map<string, Edge>();
    let first = ends ? low + 1 : low;
    while (first < high) {
      const character = String.fromCodePoint(this.#texts[first]?.codePointAt(at) ?? 0);
      const end = this.#endOfGroup(first, high, at, character);
      const common = commonLength(this.#texts[first] ?? "", this.#texts[end - 1] ?? "", at + character.length);
      const tail = this.#texts[first]?.slice(at + character.length, common) ?? "";
      const to = this.#node(first, end, common);
      const key = `${to.id} ${tail}`;
      const value = codePointOf(character);
      const same = edges.get(key);
      if (same) same.set = union(same.set, [[value, value]]);
      else {
        edges.set(key, { set: [[value, value]], tail, to });
        to.uses++;
      }
      first = end;
    }
    return this.#shared(ends, [...edges.values()]);
  }

  /** The index after the last text with this character at this position; texts with the same character are adjacent. */
  #endOfGroup(first: number, high: number, at: number, character: string): number {
    let [inside, outside] = [first, high];
    while (outside - inside > 1) {
      const middle = (inside + outside) >> 1;
      if (this.#texts[middle]?.startsWith(character, at)) inside = middle;
      else outside = middle;
    }
    return outside;
  }

  /** The state with these transitions; equal states are one. */
  #shared(ends: boolean, edges: readonly Edge[]): Node {
    const key = JSON.stringify([ends, edges.map(({ set, tail, to }) => [set, tail, to.id])]);
    let node = this.#nodes.get(key);
    if (!node) {
      const weight = edges.reduce((sum, { tail, to }) => sum + 1 + tail.length + to.weight, 0);
      this.#nodes.set(key, (node = { id: this.#nodes.size, ends, edges, weight, uses: 0 }));
    }
    return node;
  }

  #write(node: Node, depth: number): GrammarExpression {
    if (node.written) return node.written;
    const isRule = node.edges.length > 0 && ((node.uses > 1 && node.weight >= ruleWeight) || depth === groupDepth);
    const below = isRule ? 0 : depth + 1;
    const options = node.edges.map(({ set, tail, to }) => sequence(chars(set), literal(tail), this.#write(to, below)));
    const body = choiceOf(node.ends ? [empty, ...options] : options);
    if (!isRule) return body;
    return (node.written = this.#grammar.define("texts", body));
  }
}

/** The length of the common prefix, without splitting a surrogate pair. */
function commonLength(one: string, other: string, from: number): number {
  let at = from;
  while (at < one.length && at < other.length && one.charCodeAt(at) === other.charCodeAt(at)) at++;
  const last = one.charCodeAt(at - 1);
  return at > from && last >= 0xd800 && last <= 0xdbff ? at - 1 : at;
}

/** Fewer alternatives are left unchanged: the sampler can follow that many parses. */
const maxPlainOptions = 32;

/** A choice in which the common prefixes of many alternatives are written once, so that few parses are open at a time. */
export function factoredChoice(options: readonly GrammarExpression[]): GrammarExpression {
  return options.length < maxPlainOptions ? choiceOf(options) : factored(options);
}

function factored(options: readonly GrammarExpression[]): GrammarExpression {
  const groups = new Map<string, Split[]>();
  const others: GrammarExpression[] = [];
  for (const option of options) {
    const split = splitOf(option);
    const [first] = split?.head ?? "";
    if (!split || first === undefined) {
      others.push(option);
      continue;
    }
    const group = groups.get(first);
    if (group) group.push(split);
    else groups.set(first, [split]);
  }
  return choiceOf([...[...groups.values()].map(together), ...others]);
}

/** The text at the beginning of an expression, and the rest. */
interface Split {
  readonly head: string;
  readonly rest: readonly GrammarExpression[];
}

function splitOf(option: GrammarExpression): Split | null {
  if (option.kind === "text") return { head: option.text, rest: [] };
  if (option.kind !== "sequence") return null;
  const [first, ...rest] = option.items;
  return first?.kind === "text" ? { head: first.text, rest } : null;
}

function together(group: readonly Split[]): GrammarExpression {
  const characters = group.map(({ head }) => [...head]);
  const [shortest = []] = characters.toSorted((a, b) => a.length - b.length);
  let length = 0;
  while (length < shortest.length && characters.every((others) => others[length] === shortest[length])) length++;
  const rests = group.map(({ rest }, i) => sequenceOf([literal(characters[i]?.slice(length).join("") ?? ""), ...rest]));
  const begun = literal(shortest.slice(0, length).join(""));
  return sequenceOf([begun, group.length === 1 ? (rests[0] ?? empty) : factored(rests)]);
}
