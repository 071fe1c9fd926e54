import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openLlamaEngine } from "../src/engines/llama/llama-engine.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { startLlamaServer } from "./llama-server.ts";
import { processCpuMs } from "./process-cpu.ts";

/**
 * The gain of a draft model: a model of 135 million parameters that counts, with one of 6 million that counts, too. With and without it,
 * in turns, next to llama.cpp's server with the same models (`TRUEWIRE_LLAMA_SERVER`) and its default depth. At a temperature, the large
 * model's tokens are other ones than the draft's at random. A figure is the median of its rounds in tokens/s of all streams, with the drafted
 * and the accepted tokens as shares of the answer, and the least CPU time of a token in milliseconds. Before the first round of a text is one
 * that does not count, so that each server has the prompts in its cache: they take longer than the answers.
 *
 *     npm run bench draft -- [--threads 1] [--streams 1,4,8] [--rounds 3] [--tokens 100] [--texts agrees,disagrees]
 */
const { values } = parseArgs({
  options: {
    threads: { type: "string", default: "1" },
    streams: { type: "string", default: "1,4,8" },
    rounds: { type: "string", default: "3" },
    tokens: { type: "string", default: "100" },
    texts: { type: "string", default: "repeated,edit,agrees,part,disagrees" },
  },
});
const streamCounts = values.streams.split(",").map(Number);
const maxTokens = Number(values.tokens);
const threads = Number(values.threads);
const slots = Math.max(...streamCounts);
const contextSize = 2048;

const folder = resolve(".cache");
mkdirSync(folder, { recursive: true });
const file = (size: "6M" | "135M"): string => {
  const path = join(folder, `counting-${size}.gguf`);
  if (!existsSync(path)) writeRandomModel(path, { size, counts: true });
  return path;
};
const model = file("135M");
const draft = file("6M");

const range = (from: number, length: number): number[] => Array.from({ length }, (_, i) => from + i);
interface Text {
  readonly prompt: (from: number) => number[];
  readonly temperature: number;
}
const texts: Readonly<Record<string, Text>> = {
  repeated: { prompt: (from) => [...range(from, 300), from - 1], temperature: 0 },
  // One place in forty is another one.
  edit: {
    prompt: (from) => [...range(from, 300).map((token, i) => (i % 40 === 20 ? 40_000 + i : token)), from - 1],
    temperature: 0,
  },
  agrees: { prompt: (from) => range(from - 300, 300), temperature: 0 },
  // The counted token has a logit of 24, the others are spread around 0: at a temperature of 2 it is sampled three times of four.
  part: { prompt: (from) => range(from - 300, 300), temperature: 2 },
  disagrees: { prompt: (from) => range(from - 300, 300), temperature: 5 },
};

/** Generates, and returns how many draft tokens were decoded and accepted. */
interface Result {
  readonly drafted: number;
  readonly accepted: number;
}
type Generate = (prompt: readonly number[], temperature: number, seed: number) => Promise<Result>;
interface Way {
  readonly generate: Generate;
  readonly pid: number;
  readonly stop: () => Promise<void>;
}

let requests = 0;
async function ours(withDraft: boolean): Promise<Way> {
  const engine = await openLlamaEngine({
    model,
    slots,
    contextSize,
    threads,
    gpu: "off",
    ...(withDraft ? { draft: { path: draft } } : { speculation: "off" }),
  });
  const generate: Generate = async (prompt, temperature, seed) => {
    const generation = engine.generate({
      id: `bench_${++requests}`,
      model: "bench",
      prompt: { kind: "text", prompts: [prompt] },
      sampling: { temperature, seed },
      limits: { maxTokens, ignoreEos: true },
      wantsUsage: true,
      stream: true,
      extra: {},
    });
    for await (const batch of generation)
      for (const event of batch)
        if (event.type === "usage" && event.timings) {
          const { draftedTokens: drafted = 0, acceptedTokens: accepted = 0 } = event.timings;
          return { drafted, accepted };
        }
    throw new Error("The answer has no timings.");
  };
  const { processId: pid } = engine as unknown as { readonly processId: number };
  return { generate, pid, stop: () => engine.close(0) };
}

async function theirs(withDraft: boolean): Promise<Way | null> {
  const more = withDraft ? ["--spec-type", "draft-simple", "-md", draft, "-td", String(threads), "-ngld", "0"] : [];
  const server = await startLlamaServer({ model, slots, contextSize, threads, more });
  if (!server) return null;
  const generate: Generate = async (prompt, temperature, seed) => {
    const response = await fetch(`${server.url}/completion`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        prompt,
        temperature,
        seed,
        n_predict: maxTokens,
        ignore_eos: true,
        top_k: 0,
        top_p: 1,
        min_p: 0,
      }),
    });
    const { timings } = (await response.json()) as {
      readonly timings: { readonly draft_n?: number; readonly draft_n_accepted?: number };
    };
    return { drafted: timings.draft_n ?? 0, accepted: timings.draft_n_accepted ?? 0 };
  };
  return { generate, pid: server.pid, stop: () => server.stop() };
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly results: readonly Result[];
}

/** All streams at the same time. */
async function measured(
  { generate, pid }: Way,
  { prompt, temperature }: Text,
  streams: number,
  round: number,
): Promise<Round> {
  const started = performance.now();
  const cpu = processCpuMs(pid);
  const prompts = range(0, streams).map((stream) => prompt(1000 + 4000 * stream));
  const results = await Promise.all(prompts.map((tokens, i) => generate(tokens, temperature, 10 * round + i)));
  const tokens = streams * maxTokens;
  return {
    perSecond: (tokens * 1000) / (performance.now() - started),
    cpuMs: (processCpuMs(pid) - cpu) / tokens,
    results,
  };
}

const opened = [await ours(true), await ours(false), await theirs(true), await theirs(false)];
const ways = opened.flatMap((one) => (one ? [one] : []));
console.log(`135M and 6M Q8_0, ${threads} thread(s), median of ${values.rounds}, tokens/s of all streams`);
console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
const names = ["draft", "off", "llama draft", "llama off"];
console.log("text, streams".padEnd(16) + names.map((name) => name.padStart(26)).join(""));
for (const name of values.texts.split(","))
  for (const streams of streamCounts) {
    const text = texts[name];
    if (!text) throw new Error(`--texts takes ${Object.keys(texts).join(", ")}, and not ${name}.`);
    const rounds = ways.map((): Round[] => []);
    for (let round = 0; round <= Number(values.rounds); round++)
      for (const [at, way] of ways.entries()) {
        const one = await measured(way, text, streams, round);
        if (round > 0) rounds[at]?.push(one);
      }
    const cells = rounds.map((all) => {
      const share = (of: keyof Result): string => {
        const each = all.flatMap(({ results }) => results.map((result) => result[of]));
        return (each.reduce((total, tokens) => total + tokens, 0) / each.length / maxTokens).toFixed(2);
      };
      const cpuMs = Math.min(...all.map((round) => round.cpuMs)).toFixed(1);
      return `${median(all.map(({ perSecond }) => perSecond)).toFixed(0)} (${share("drafted")}/${share("accepted")}) ${cpuMs} ms`;
    });
    console.log(`${name}, ${streams}`.padEnd(16) + cells.map((cell) => cell.padStart(26)).join(""));
  }
for (const { stop } of ways) await stop();
