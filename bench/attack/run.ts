import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Attack } from "./attack.ts";
import { attacks as batches } from "./batches.ts";
import { attacks as bodies } from "./bodies.ts";
import { attacks as connections } from "./connections.ts";
import { attacks as files } from "./files.ts";
import { attacks as gateway } from "./gateway.ts";
import { attacks as grammars } from "./grammars.ts";
import { attacks as hook } from "./hook.ts";
import { attacks as keys } from "./keys.ts";
import { closeServers } from "./local-model.ts";
import { attacks as readers } from "./readers.ts";
import { attacks as stores } from "./stores.ts";
import { attacks as texts } from "./texts.ts";

/**
 * What a single client, upstream or store can do to a server: the campaign that `docs/faults.md` describes.
 *
 *     npm run build && npm run bench attack -- [--only GROUP] [--row TEXT] [--all]
 *
 * `--only` runs one group, `--row` the attacks whose name contains the text, `--all` also those that take more than about ten seconds, and
 * those that differ little from others or from a test. The exit code is 1 when a server did not hold: an attack was not answered or did not end, another client was not served, or memory was not
 * freed. Times are reported and never decide. Linux only.
 */
const groups: Readonly<Record<string, readonly Attack[]>> = {
  bodies,
  connections,
  readers,
  grammars,
  texts,
  gateway,
  files,
  stores,
  batches,
  keys,
  hook,
};

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    row: { type: "string", default: "" },
    all: { type: "boolean", default: false },
  },
});
if (values.only !== undefined && !Object.hasOwn(groups, values.only))
  throw new Error(`--only: expected one of ${Object.keys(groups).join(", ")}, but got '${values.only}'`);

const failures: string[] = [];
let held = 0;

function printRow(cells: readonly string[]): void {
  console.log(`| ${cells.join(" | ")} |`);
}

async function runAttack({ name, run }: Attack): Promise<void> {
  try {
    const { answered, others, memoryMiB, tookMs, failures: found } = await run();
    const memory = memoryMiB ? memoryMiB.map((mebibytes) => mebibytes.toFixed(0)).join(" → ") : "";
    printRow([name, answered, others, memory, `${(tookMs / 1000).toFixed(1)} s`]);
    for (const failure of found) failures.push(`${name}: ${failure}`);
    if (found.length === 0) held++;
  } catch (error) {
    printRow([name, "the attack could not be run", "", "", ""]);
    failures.push(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
}

console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}\n`);
printRow(["attack", "answered", "others", "memory (MiB): before → worst → after", "time"]);
printRow(["---", "---", "---", "---", "---"]);
let skipped = 0;
for (const [group, attacks] of Object.entries(groups)) {
  if (values.only !== undefined && values.only !== group) continue;
  for (const attack of attacks) {
    if (!attack.name.includes(values.row)) continue;
    // A row that is asked for by its name runs, slow or not.
    if (attack.slow === true && !values.all && values.row === "") skipped++;
    else await runAttack(attack);
  }
}
closeServers();
console.log(`\n${held} held, ${failures.length} failures${skipped > 0 ? `, ${skipped} skipped (--all)` : ""}`);
for (const failure of failures) console.log(`- ${failure}`);
if (failures.length > 0) process.exitCode = 1;
