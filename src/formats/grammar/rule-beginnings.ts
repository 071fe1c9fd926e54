import { GbnfError } from "./gbnf-error.ts";
import type { GbnfRule, Place } from "./gbnf-rules.ts";

/** A rule that another one begins with, and what comes behind it there. */
interface Beginning {
  readonly rule: GbnfRule;
  readonly rest: Place | null;
}

/**
 * Refuses rules that begin with themselves and have something after that, which would pile up without an end: `a ::= a "x" | "y"`, also by
 * way of other rules that may be empty, where llama.cpp does not notice. Linear, and without recursion (Tarjan 1972: groups of rules that
 * lead back to each other).
 *
 * @throws {GbnfError} with the rule's name.
 */
export function checkBeginnings(rules: readonly GbnfRule[]): void {
  const empty = rulesThatMayBeEmpty(rules);
  const isPassed = (rule: GbnfRule): boolean => empty.has(rule);
  const found = new Map<GbnfRule, { order: number; low: number; group: number | null }>();
  const open: GbnfRule[] = [];
  let groups = 0;
  for (const start of rules) {
    if (found.has(start)) continue;
    const path: { rule: GbnfRule; first: readonly Beginning[]; at: number; mark: { order: number; low: number } }[] =
      [];
    const enter = (rule: GbnfRule): void => {
      const mark = { order: found.size, low: found.size, group: null };
      found.set(rule, mark);
      open.push(rule);
      path.push({ rule, first: beginningsOf(rule, isPassed), at: 0, mark });
    };
    enter(start);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const rule = top.first[top.at++]?.rule;
      if (rule !== undefined) {
        const known = found.get(rule);
        if (!known) enter(rule);
        else if (known.group === null) top.mark.low = Math.min(top.mark.low, known.order);
        continue;
      }
      path.pop();
      const outer = path.at(-1);
      if (outer) outer.mark.low = Math.min(outer.mark.low, top.mark.low);
      if (top.mark.low !== top.mark.order) continue;
      for (let member = open.pop(); member; member = open.pop()) {
        const mark = found.get(member);
        if (mark) mark.group = groups;
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

/** The rules that a rule's texts begin with, as often as it says so. `isPassed`: it may be empty, so that the next one begins, too. */
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
  /** Alternatives that are empty if this rule is, and what is behind it there. */
  const waiting = new Map<GbnfRule, { readonly of: GbnfRule; readonly rest: Place | null }[]>();
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
