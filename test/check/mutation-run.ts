import type { Finding } from "../../src/judge/check/rules/rule.ts";
import { illegalChanges, legalChanges } from "./mutations/every-mutation.ts";
import type { IllegalChange, LegalChange } from "./mutations/mutation.ts";
import { oneOf, seeded } from "./random.ts";

export interface Score {
  /** Changes that were made. */
  made: number;
  /** Of these, after which anything was found. */
  reported: number;
  /** Of these, after which the change's own rule found it. */
  caught: number;
}

/** For how many exchanges a change is tried until one fits it. */
const attempts = 500;

/** Random illegal changes of random legal exchanges until `count` were made; the score of each rule. */
export function runIllegal(count: number, seed: number): Map<string, Score> {
  const random = seeded(seed);
  const scores = new Map<string, Score>();
  for (let made = 0; made < count; made++) {
    const change = oneOf(illegalChanges, random);
    const { findings } = madeSomewhere(change, random);
    const score = scores.get(change.rule) ?? { made: 0, reported: 0, caught: 0 };
    scores.set(change.rule, score);
    score.made++;
    if (findings.length > 0) score.reported++;
    if (findings.some((finding) => finding.rule === change.rule)) score.caught++;
  }
  return scores;
}

/** Random legal changes; the findings that they led to, which there should be none of. */
export function runLegal(count: number, seed: number): string[] {
  const random = seeded(seed);
  const found: string[] = [];
  for (let made = 0; made < count; made++) {
    const change = oneOf(legalChanges, random);
    const { at, findings } = madeSomewhere(change, random);
    for (const finding of findings) found.push(`${change.name}, seed ${at}: ${finding.rule}: ${finding.found}`);
  }
  return found;
}

/** Makes the change in a random exchange that it fits. */
function madeSomewhere(
  change: IllegalChange | LegalChange,
  random: () => number,
): { readonly at: number; readonly findings: readonly Finding[] } {
  for (let tried = 0; tried < attempts; tried++) {
    const at = Math.floor(random() * 2 ** 31);
    const findings = change.make(at);
    if (findings) return { at, findings };
  }
  throw new Error(`no exchange of ${attempts} fits: ${change.name}`);
}
