import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openLlamaEngine } from "../src/engines/llama/llama-engine.ts";
import type { Engine } from "../src/wire/core/engine.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { processCpuMs } from "./process-cpu.ts";

/**
 * What drafts for repetitive texts gain and cost: a model of 135 million parameters that counts (after each token comes the next one),
 * once with `speculation` auto and once off, in turns. A figure is the median of its rounds. Linux only.
 *
 *     npm run bench speculation -- [--threads 1] [--streams 1,4] [--rounds 5] [--tokens 120]
 */
const { values } = parseArgs({
  options: {
    threads: { type: "string", default: "1" },
    streams: { type: "string", default: "1,4" },
    rounds: { type: "string", default: "5" },
    tokens: { type: "string", default: "120" },
  },
});
const streamCounts = values.streams.split(",").map(Number);
const tokens = Number(values.tokens);
const threads = Number(values.threads);

const folder = resolve(".cache");
mkdirSync(folder, { recursive: true });
const model = join(folder, "counting-135M.gguf");
if (!existsSync(model)) writeRandomModel(model, { size: "135M", counts: true });

/** What the model will count from here: each stream has a text of its own. */
const range = (from: number, length: number): number[] => Array.from({ length }, (_, i) => from + i);
const other = (i: number): number => 40_000 + i;

/** A prompt of about 500 tokens, after which the model counts from `from`. */
const prompts: Readonly<Record<string, (from: number) => number[]>> = {
  "an edited file": (from) =>
    // One place in forty is changed, is missing, or has something more.
    range(from, 500).flatMap((token, i) => {
      if (i % 40 !== 20) return [token];
      const edits = [[other(i)], [], [other(i), token], [other(i), other(i + 1), other(i + 2)]];
      return edits[((i / 40) % edits.length) | 0] ?? [];
    }),
  "one of eight known": (from) => range(from, 500).map((token, i) => (i % 64 < 8 ? token : other(i))),
  "nothing repeats": (from) => range(from + 5000, 500),
  // After each two or four tokens of the answer, the prompt has a continuation that does not come.
  "misleading pairs": (from) => range(from, 170).flatMap((token, i) => [token, token + 1, other(i)]),
  "misleading fours": (from) => range(from, 100).flatMap((token, i) => [...range(token, 4), other(i)]),
};

interface Way {
  readonly engine: Engine;
  readonly pid: number;
}
async function open(speculation: "auto" | "off"): Promise<Way> {
  const slots = Math.max(...streamCounts);
  const engine = await openLlamaEngine({ model, slots, contextSize: 1280, threads, gpu: "off", speculation });
  return { engine, pid: (engine as unknown as { readonly processId: number }).processId };
}

let requests = 0;
async function generate({ engine }: Way, prompt: readonly number[], maxTokens: number): Promise<number> {
  const generation = engine.generate({
    id: `bench_${++requests}`,
    model: "bench",
    prompt: { kind: "text", prompts: [prompt] },
    sampling: { temperature: 0 },
    limits: { maxTokens, ignoreEos: true },
    wantsUsage: true,
    stream: true,
    extra: {},
  });
  let ms = Number.NaN;
  let count = 0;
  for await (const batch of generation)
    for (const event of batch)
      if (event.type === "usage" && event.timings) {
        ms = event.timings.generationMs;
        count = event.usage.completionTokens;
      }
  if (count !== maxTokens) throw new Error(`There are ${count} tokens.`);
  return (count * 1000) / ms;
}

interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
}

async function measure(way: Way, texts: readonly (readonly number[])[]): Promise<Round> {
  // Prompts are read before, and found in the cache.
  for (const text of texts) await generate(way, text, 1);
  const before = processCpuMs(way.pid);
  const rates = await Promise.all(texts.map((text) => generate(way, text, tokens)));
  const perSecond = rates.reduce((sum, rate) => sum + rate, 0);
  return { perSecond, cpuMs: (processCpuMs(way.pid) - before) / (tokens * texts.length) };
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const row = (name: string, ...cells: readonly (string | number)[]): void =>
  console.log(
    name.padEnd(20) + cells.map((cell) => (typeof cell === "number" ? cell.toFixed(2) : cell).padStart(12)).join(""),
  );

const auto = await open("auto");
const off = await open("off");
console.log(`135M Q8_0, ${threads} thread(s), median of ${values.rounds}; CPU time is that of the model's process.`);
console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
row("", "streams", "tokens/s", "off", "ratio", "CPU ms/token", "off", "ratio", "drafted", "accepted");
for (const [name, promptFrom] of Object.entries(prompts))
  for (const streams of streamCounts) {
    const texts = range(0, streams).map((stream) => {
      const from = 1000 + 8000 * stream;
      return [...promptFrom(from), from - 1];
    });
    const [mine, others]: [Round[], Round[]] = [[], []];
    const before = auto.engine.health().counters ?? {};
    for (let round = 0; round < Number(values.rounds); round++) {
      mine.push(await measure(auto, texts));
      others.push(await measure(off, texts));
    }
    const after = auto.engine.health().counters ?? {};
    const made = Number(values.rounds) * streams * tokens;
    const share = (of: string): string => `${(((after[of] ?? 0) - (before[of] ?? 0)) / made).toFixed(2)}/token`;
    const [a, b] = [mine, others].map((rounds) => median(rounds.map(({ perSecond }) => perSecond)));
    const [c, d] = [mine, others].map((rounds) => median(rounds.map(({ cpuMs }) => cpuMs)));
    const [x = 0, y = 0, z = 0, u = 0] = [a, b, c, d];
    row(name, String(streams), x, y, x / y, z, u, u / z, share("draftedTokens"), share("acceptedTokens"));
  }
await auto.engine.close(0);
await off.engine.close(0);
