import type { Finding } from "../../src/check/rules/rule.ts";
import { judge } from "../../src/check/rules/judge.ts";
import { draftOf, exchangeOf } from "./draft.ts";
import { illegalMutations, type Mutation } from "./illegal-mutations.ts";
import { legalExchange } from "./legal-exchange.ts";
import { legalMutations } from "./legal-mutations.ts";
import { oneOf, seeded } from "./random.ts";

export interface Score {
  /** Streams that the mutation could be made in. */
  made: number;
  /** Of these, in which anything was found. */
  reported: number;
  /** Of these, in which the mutation's own rule found it. */
  caught: number;
}

/** Makes one illegal change in one legal stream; undefined where it cannot be made. */
export function illegal(mutation: Mutation, seed: number): readonly Finding[] | undefined {
  const draft = draftOf(legalExchange(seed));
  const before = JSON.stringify(exchangeOf(draft));
  if (!mutation.apply(draft, seeded(seed))) return undefined;
  const mutated = exchangeOf(draft);
  return JSON.stringify(mutated) === before ? undefined : judge(mutated).findings;
}

/** Random illegal changes of random legal streams until `count` were made; the score of each rule. */
export function runIllegal(count: number, seed: number): Map<string, Score> {
  const random = seeded(seed);
  const scores = new Map<string, Score>();
  for (let made = 0, tried = 0; made < count && tried < count * 40; tried++) {
    const mutation = oneOf(illegalMutations, random);
    const findings = illegal(mutation, Math.floor(random() * 2 ** 31));
    if (!findings) continue;
    made++;
    const score = scores.get(mutation.rule) ?? { made: 0, reported: 0, caught: 0 };
    scores.set(mutation.rule, score);
    score.made++;
    if (findings.length > 0) score.reported++;
    if (findings.some((finding) => finding.rule === mutation.rule)) score.caught++;
  }
  return scores;
}

/** Random legal changes; the findings that they led to, which there should be none of. */
export function runLegal(count: number, seed: number): string[] {
  const random = seeded(seed);
  const found: string[] = [];
  for (let made = 0; made < count;) {
    const mutation = oneOf(legalMutations, random);
    const at = Math.floor(random() * 2 ** 31);
    const draft = draftOf(legalExchange(at));
    if (!mutation.apply(draft, random)) continue;
    made++;
    for (const finding of judge(exchangeOf(draft)).findings)
      found.push(`${mutation.name}, seed ${at}: ${finding.rule}: ${finding.found}`);
  }
  return found;
}
