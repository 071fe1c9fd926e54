import { GbnfError, GrammarLoadError } from "./gbnf-error.ts";
import type { GbnfRule, Place } from "./gbnf-rules.ts";

/** llama.cpp goes through a rule as often as others begin with it: twice for `a ::= b | b`, four times through what `b` begins with so. */
const mostVisits = 200_000;

/**
 * Refuses rules that begin with themselves: those that llama.cpp refuses, too, and those where it does not notice, and would write down
 * what comes behind them again and again without an end (`a ::= b a "x" | "y"`, where `b` may be empty by way of another rule). Also
 * refuses rules whose beginnings double until the search for them takes minutes. Linear, and without recursion.
 *
 * @throws {GbnfError} with the rule's name. @throws {GrammarLoadError} for the doubling.
 */
export function checkBeginnings(rules: readonly GbnfRule[]): void {
  checkAsLlama(rules);
  checkGrowth(rules);
}

/** A rule that another one begins with, and what comes behind it there. */
interface Beginning {
  readonly rule: GbnfRule;
  readonly rest: Place | null;
}

/** As `llama_grammar_detect_left_recursion` of v0.5.0 does: only a rule with an alternative of nothing at all is passed over. */
function checkAsLlama(rules: readonly GbnfRule[]): void {
  const isPassed = (rule: GbnfRule): boolean => rule.options.includes(null);
  const visits = new Map<GbnfRule, number>();
  const begun = new Set<GbnfRule>();
  for (const start of rules) {
    if (visits.has(start)) continue;
    const path = [{ rule: start, first: beginningsOf(start, isPassed), at: 0, visits: 1 }];
    begun.add(start);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      if (top.visits > mostVisits)
        throw new GrammarLoadError(`its rules begin with each other in more than ${mostVisits} ways`);
      const rule = top.first[top.at++]?.rule;
      if (rule === undefined) {
        path.pop();
        begun.delete(top.rule);
        visits.set(top.rule, top.visits);
        const outer = path.at(-1);
        if (outer) outer.visits += top.visits;
        continue;
      }
      if (begun.has(rule)) throw beginsWithItself(rule);
      const known = visits.get(rule);
      if (known !== undefined) top.visits += known;
      else {
        begun.add(rule);
        path.push({ rule, first: beginningsOf(rule, isPassed), at: 0, visits: 1 });
      }
    }
  }
}

/** Rules that lead back to each other (Tarjan 1972) must have nothing behind them on the way: else it piles up. */
function checkGrowth(rules: readonly GbnfRule[]): void {
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
