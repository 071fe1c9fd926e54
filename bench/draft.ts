import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openLlamaEngine } from "../src/engines/llama/llama-engine.ts";
import { writeRandomModel } from "../test/fixtures/random-model.ts";
import { startLlamaServer } from "./llama-server.ts";

/**
 * The gain of a draft model: a model of 135 million parameters that counts, with one of 6 million that counts, too. With and without it,
 * in turns, next to llama.cpp's server with the same models (`TRUEWIRE_LLAMA_SERVER`) and its default depth. At a temperature, the large
 * model's tokens are other ones than the draft's at random. A figure is the median of its rounds, in
 * tokens/s of all streams.
 *
 *     npm run bench draft -- [--threads 1] [--streams 1,4,8] [--rounds 3] [--tokens 100]
 */
const { values } = parseArgs({
  options: {
    threads: { type: "string", default: "1" },
    streams: { type: "string", default: "1,4,8" },
    rounds: { type: "string", default: "3" },
    tokens: { type: "string", default: "100" },
  },
});
const streamCounts = values.streams.split(",").map(Number);
const maxTokens = Number(values.tokens);
const threads = Number(values.threads);
const slots = Math.max(...streamCounts);
const contextSize = 1024;

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
  "repeated text": { prompt: (from) => [...range(from, 300), from - 1], temperature: 0 },
  // One place in forty is another one.
  "code edit": {
    prompt: (from) => [...range(from, 300).map((token, i) => (i % 40 === 20 ? 40_000 + i : token)), from - 1],
    temperature: 0,
  },
  "plain, draft agrees": { prompt: (from) => range(from - 300, 300), temperature: 0 },
  "plain, agrees in part": { prompt: (from) => range(from - 300, 300), temperature: 0.09 },
  "plain, disagrees": { prompt: (from) => range(from - 300, 300), temperature: 1 },
};

/** Generates, and returns the tokens/s of the stream, and how many draft tokens were decoded and accepted. */
interface Result {
  readonly perSecond: number;
  readonly drafted: number;
  readonly accepted: number;
}
type Way = (prompt: readonly number[], temperature: number, seed: number) => Promise<Result>;

let requests = 0;
async function ours(withDraft: boolean): Promise<{ readonly way: Way; readonly stop: () => Promise<void> }> {
  const engine = await openLlamaEngine({
    model,
    slots,
    contextSize,
    threads,
    gpu: false,
    ...(withDraft ? { draft: { path: draft } } : { speculation: "off" }),
  });
  const way: Way = async (prompt, temperature, seed) => {
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
          const { generationMs, draftedTokens = 0, acceptedTokens = 0 } = event.timings;
          return { perSecond: (maxTokens * 1000) / generationMs, drafted: draftedTokens, accepted: acceptedTokens };
        }
    throw new Error("The answer has no timings.");
  };
  return { way, stop: () => engine.close(0) };
}

async function theirs(withDraft: boolean): Promise<{ readonly way: Way; readonly stop: () => Promise<void> } | null> {
  const more = withDraft ? ["--spec-type", "draft-simple", "-md", draft, "-td", String(threads), "-ngld", "0"] : [];
  const server = await startLlamaServer({ model, slots, contextSize, threads, more });
  if (!server) return null;
  const way: Way = async (prompt, temperature, seed) => {
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
      readonly timings: { predicted_per_second: number; draft_n?: number; draft_n_accepted?: number };
    };
    const { predicted_per_second: perSecond, draft_n: drafted = 0, draft_n_accepted: accepted = 0 } = timings;
    return { perSecond, drafted, accepted };
  };
  return { way, stop: () => server.stop() };
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const sum = (results: readonly Result[], of: keyof Result): number =>
  results.reduce((total, one) => total + one[of], 0);

const opened = [await ours(true), await ours(false), await theirs(true), await theirs(false)];
const ways = opened.flatMap((one) => (one ? [one] : []));
console.log(`135M and 6M Q8_0, ${threads} thread(s), median of ${values.rounds}, tokens/s of all streams`);
console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
console.log(
  "".padEnd(24) + ["streams", "draft", "off", "llama draft", "llama off"].map((name) => name.padStart(22)).join(""),
);
for (const [name, { prompt, temperature }] of Object.entries(texts))
  for (const streams of streamCounts) {
    const results = ways.map((): Result[][] => []);
    for (let round = 0; round < Number(values.rounds); round++)
      for (const [at, { way }] of ways.entries()) {
        const prompts = range(0, streams).map((stream) => prompt(1000 + 4000 * stream));
        results[at]?.push(await Promise.all(prompts.map((tokens, i) => way(tokens, temperature, 10 * round + i))));
      }
    const cells = results.map((rounds) => {
      const all = rounds.flat();
      const share = `${(sum(all, "drafted") / all.length / maxTokens).toFixed(2)}/${(sum(all, "accepted") / all.length / maxTokens).toFixed(2)}`;
      return `${median(rounds.map((one) => sum(one, "perSecond"))).toFixed(0)} (${share})`;
    });
    console.log(name.padEnd(24) + [String(streams), ...cells].map((cell) => cell.padStart(22)).join(""));
  }
for (const { stop } of ways) await stop();
