/** Prints the mutation score of every rule: `npm run mutate [-- COUNT [SEED]]`. */
import { everyRule } from "../../src/judge/check/rules/every-rule.ts";
import { runIllegal, runLegal, type Score } from "./mutation-run.ts";

const count = Number(process.argv[2] ?? 10_000);
const seed = Number(process.argv[3] ?? 1);

const scores = runIllegal(count, seed);
const rows = everyRule.map(({ id }) => ({ id, ...(scores.get(id) ?? { made: 0, reported: 0, caught: 0 }) }));
console.log(`${"rule".padEnd(28)}${"made".padStart(7)}${"reported".padStart(10)}${"by the rule".padStart(13)}`);
for (const { id, made, reported, caught } of rows.toSorted((a, b) => a.caught / a.made - b.caught / b.made)) {
  console.log(
    `${id.padEnd(28)}${String(made).padStart(7)}${percent(reported, made).padStart(10)}${percent(caught, made).padStart(13)}`,
  );
}
const { made, reported, caught } = sum(rows);
const silent = rows.filter((row) => row.made === 0).map(({ id }) => id);
console.log(
  `\n${made} illegal changes for ${rows.length} rules: ${percent(reported, made)} reported, ${percent(caught, made)} by the rule that is meant`,
);
if (silent.length > 0) console.log(`without a change among them: ${silent.join(", ")}`);

const legal = runLegal(count, seed + 1);
console.log(`${count} legal changes, ${legal.length} findings`);
for (const line of legal.slice(0, 20)) console.log(`  ${line}`);
process.exit(reported / made >= 0.99 && silent.length === 0 && legal.length === 0 ? 0 : 1);

function sum(all: readonly Score[]): Score {
  const total = { made: 0, reported: 0, caught: 0 };
  for (const score of all) {
    total.made += score.made;
    total.reported += score.reported;
    total.caught += score.caught;
  }
  return total;
}

function percent(part: number, whole: number): string {
  return whole === 0 ? "–" : `${((100 * part) / whole).toFixed(1)} %`;
}
