import { illegalChanges, legalChanges } from "./mutations/every-mutation.ts";
import { oneOf, seeded } from "./random.ts";

export interface Score {
  /** Changes that were made. */
  made: number;
  /** Of these, after which anything was found. */
  reported: number;
  /** Of these, after which the change's own rule found it. */
  caught: number;
}

/** Random illegal changes of random legal exchanges until `count` were made; the score of each rule. */
export function runIllegal(count: number, seed: number): Map<string, Score> {
  const random = seeded(seed);
  const scores = new Map<string, Score>();
  for (let made = 0, tried = 0; made < count && tried < count * 40; tried++) {
    const change = oneOf(illegalChanges, random);
    const findings = change.make(Math.floor(random() * 2 ** 31));
    if (!findings) continue;
    made++;
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
  for (let made = 0; made < count;) {
    const change = oneOf(legalChanges, random);
    const at = Math.floor(random() * 2 ** 31);
    const findings = change.make(at);
    if (!findings) continue;
    made++;
    for (const finding of findings) found.push(`${change.name}, seed ${at}: ${finding.rule}: ${finding.found}`);
  }
  return found;
}
