import { GbnfError } from "./gbnf-error.ts";
import type { GbnfRule, RulePosition } from "./gbnf-rules.ts";

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
