import { cpuOfAll } from "./process-usage.ts";
import type { Job, Outcome } from "./client.ts";

/** A build of Truewire that runs. */
export interface Build {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
}

interface Load {
  readonly name: string;
  readonly stream: boolean;
  readonly concurrency: number;
  /** Requests in one round. */
  readonly total: number;
}

const loads: readonly Load[] = [
  { name: "json", stream: false, concurrency: 16, total: 2000 },
  { name: "1 stream", stream: true, concurrency: 1, total: 400 },
  { name: "16 streams", stream: true, concurrency: 16, total: 800 },
  { name: "64 streams", stream: true, concurrency: 64, total: 800 },
];

/**
 * Compares what two builds cost, in CPU microseconds an event (json: an answer). They take turns, and every other round begins with the
 * other one, so that a machine that becomes slower in between does so for both.
 */
export async function compareBuilds(
  builds: readonly [Build, Build],
  run: (job: Job) => Promise<Outcome>,
  rounds: number,
  jsonOnly: boolean,
): Promise<void> {
  console.log(`CPU µs per event (json: per answer), mean of ${rounds} rounds in turns\n`);
  console.log("load        ", ...builds.map(({ name }) => name.slice(-28).padStart(28)), "  ratio   of medians");
  for (const { name, ...load } of loads) {
    if (jsonOnly && load.stream) break;
    const costs: number[][] = [[], []];
    const measure = async (build: Build, total: number): Promise<number> => {
      const before = cpuOfAll(build.pid);
      const { events, answers } = await run({ url: build.url, model: "burst", ...load, total });
      return (cpuOfAll(build.pid) - before) / (load.stream ? events : answers);
    };
    for (const build of builds) await measure(build, load.total * 3);
    for (let round = 0; round < rounds; round++) {
      for (const at of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const build = builds[at];
        if (build) costs[at]?.push(await measure(build, load.total));
      }
    }
    const [first = [], second = []] = costs;
    console.log(
      name.padEnd(12),
      ...[first, second].map((each) => mean(each).toFixed(2).padStart(28)),
      (mean(first) / mean(second)).toFixed(3).padStart(7),
      (median(first) / median(second)).toFixed(3).padStart(12),
    );
  }
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
}

/** The median; 0 for an empty list. */
export function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
