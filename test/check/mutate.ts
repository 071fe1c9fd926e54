/** Prints the mutation score of every rule: `npm run mutate [-- COUNT [SEED]]`. */
import { runIllegal, runLegal } from "./mutation-run.ts";

const count = Number(process.argv[2] ?? 10_000);
const seed = Number(process.argv[3] ?? 1);

const scores = [...runIllegal(count, seed)].toSorted(([, a], [, b]) => a.caught / a.made - b.caught / b.made);
console.log(`${"rule".padEnd(28)}${"made".padStart(7)}${"reported".padStart(10)}${"by the rule".padStart(13)}`);
for (const [rule, { made, reported, caught }] of scores) {
  console.log(
    `${rule.padEnd(28)}${String(made).padStart(7)}${percent(reported, made).padStart(10)}${percent(caught, made).padStart(13)}`,
  );
}
const made = scores.reduce((sum, [, score]) => sum + score.made, 0);
const reported = scores.reduce((sum, [, score]) => sum + score.reported, 0);
console.log(`\n${made} illegal changes, ${percent(reported, made)} reported`);

const legal = runLegal(count, seed + 1);
console.log(`${count} legal changes, ${legal.length} findings`);
for (const line of legal.slice(0, 20)) console.log(`  ${line}`);
process.exit(reported / made >= 0.99 && legal.length === 0 ? 0 : 1);

function percent(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(1)} %`;
}
